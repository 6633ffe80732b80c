// Cases that need a GPU.
#pragma once
#include <benchmark/benchmark.h>
#include <gradus/base/error.h>
#include <gradus/runtime/device_info.h>

#include <algorithm>
#include <string>

namespace timing {

/// Where no GPU can be used: registers a case `name` that is skipped and says why. True where one can.
inline bool have_gpu(const char* name) {
  if (gradus::is_available(gradus::DeviceType::cuda)) return true;
  benchmark::RegisterBenchmark((std::string(name) + "/cuda").c_str(), [](benchmark::State& state) {
    std::string why = "no GPU";
    try {
      gradus::get_device_properties(gradus::DeviceType::cuda);
    } catch (const gradus::Error& e) {
      why = e.what();
      why.resize(std::min(why.size(), why.find('\n')));  // the cause without the hint
    }
    state.SkipWithError(("skipped: " + why).c_str());
    for ([[maybe_unused]] auto _ : state) {
    }
  });
  return false;
}

}  // namespace timing
