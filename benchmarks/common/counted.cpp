#include <common/counted.h>
#include <gradus/runtime/caching_allocator.h>
#include <gradus/runtime/device_stats.h>

namespace timing {

using namespace gradus;

void count_work(benchmark::State& state, Device device, const Work& work) {
  work();
  synchronize(device);
  reset_peak_memory_stats(device);
  const Stats before = stats(device);
  work();
  synchronize(device);
  const Stats used = stats(device) - before;
  state.counters["launches"] = static_cast<double>(used.launches);
  state.counters["copied_bytes"] = static_cast<double>(used.bytes_h2d + used.bytes_d2h);
  state.counters["peak_bytes"] = static_cast<double>(max_memory_allocated(device));
}

void set_flops(benchmark::State& state, double flops) {
  state.counters["flops"] = benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
}

std::string name_of(Device device) { return device.is_sim() ? "sim_SIMULATED" : to_string(device.type()); }

}  // namespace timing
