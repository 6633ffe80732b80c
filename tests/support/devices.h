// Which devices tests of several run on.
#pragma once
#include <gradus/runtime/device_info.h>

#include <vector>

namespace gradus::testing {

/// The first device of each type that queues work, sim and cuda, where there is one.
inline std::vector<Device> devices_with_queues() {
  std::vector<Device> found;
  for (const DeviceType type : {DeviceType::sim, DeviceType::cuda})
    if (device_count(type) > 0) found.push_back(Device(type));
  return found;
}

}  // namespace gradus::testing
