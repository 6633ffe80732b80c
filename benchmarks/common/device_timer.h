// Timing of work on a device. A GPU has a clock of its own, events in its stream, which sees neither the
// host's launches nor its waiting; cpu and sim are timed by the host's clock.
#pragma once
#include <benchmark/benchmark.h>
#include <gradus/runtime/device.h>

#include <functional>

namespace timing {

using Work = std::function<void()>;

/// What a GPU's L2 cache holds when work begins: what the same work left there, or nothing of it.
enum class Caches { hot, cold };

/// Says that a case is timed by time_on(): by the clock that `device` has.
benchmark::internal::Benchmark* timed_on(gradus::Device device, benchmark::internal::Benchmark* b);

/// Runs `work` as often as `state` wants. On a GPU: warm-up, then rows of it that last 20 ms together; a row
/// during which the GPU was slowed down (heat, its power supply) is dropped, counted in "throttled", and
/// taken again after a rest. Where each one is dropped, the case is skipped and says why. Rows at the clock
/// that its power limit allows, which heavy work always reaches, are counted in "power_capped". Returns the
/// seconds of one; 0 where there are none.
double time_on(benchmark::State& state, gradus::Device device, const Work& work, Caches caches = Caches::hot);

/// The seconds of `work` outside of a case, to set another time in relation to; 0 where the GPU was slowed
/// down in each row.
double seconds_of(gradus::Device device, const Work& work, Caches caches = Caches::hot);

}  // namespace timing
