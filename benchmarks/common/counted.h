// What a case's work is made of, counted before it is timed: the verdicts of a results file need it.
#pragma once
#include <benchmark/benchmark.h>
#include <common/device_timer.h>

namespace timing {

/// Runs `work` twice on `device`, the first time to warm up, and sets what the second one did: `launches`,
/// `copied_bytes` between host and device, and `peak_bytes`, the most memory that tensors had.
void count_work(benchmark::State& state, gradus::Device device, const Work& work);

/// States the floating-point operations of one iteration.
void set_flops(benchmark::State& state, double flops);

/// "cpu", "cuda" or "sim_SIMULATED": how names of cases say where they ran.
std::string name_of(gradus::Device device);

}  // namespace timing
