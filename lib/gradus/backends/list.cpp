// The explicit list of backends. Nothing else includes their headers.
#include <gradus/backends/cpu/backend.h>
#include <gradus/backends/sim/backend.h>

namespace gradus::runtime {

Backend* find_backend(DeviceType type) {
  switch (type) {
    case DeviceType::cpu:
      return &cpu_backend();
    case DeviceType::sim:
      return &sim_backend();
    case DeviceType::cuda:
      return nullptr;
  }
  return nullptr;
}

}  // namespace gradus::runtime
