// The explicit list of backends. Nothing else includes their headers.
#include <gradus/backends/cpu/backend.h>
#include <gradus/backends/cuda/backend.h>
#include <gradus/backends/sim/backend.h>
#include <gradus/base/version.h>

namespace gradus::runtime {

Backend* find_backend(DeviceType type) {
  switch (type) {
    case DeviceType::cpu:
      return &cpu_backend();
    case DeviceType::sim:
      return &sim_backend();
    case DeviceType::cuda:
      if constexpr (kHasCuda) return &cuda_backend();
      return nullptr;
  }
  return nullptr;
}

}  // namespace gradus::runtime
