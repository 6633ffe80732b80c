// The explicit list of backends. Nothing else includes their headers.
#include <gradus/backends/cpu/backend.h>

namespace gradus::runtime {

Backend* find_backend(DeviceType type) {
  switch (type) {
    case DeviceType::cpu:
      return &cpu_backend();
    case DeviceType::sim:
      return nullptr;
    case DeviceType::cuda:
      return nullptr;
  }
  return nullptr;
}

}  // namespace gradus::runtime
