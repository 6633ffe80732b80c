// The counters of base/stats.h, device by device.
#pragma once
#include <gradus/base/stats.h>
#include <gradus/runtime/device.h>

namespace gradus {
namespace detail {

inline Counters& counters_of(Device device) {
  static_assert(kDeviceTypeCount * Device::kMaxIndices == kCounterSlots);
  return counters[static_cast<int>(device.type()) * Device::kMaxIndices + device.index()];
}

}  // namespace detail

/// What was done on one device. A copy between the cpu and another device counts on the other device, one
/// between two devices on its source's; pinned memory counts on device 0 of the type that it is pinned for.
inline Stats stats(Device device) { return detail::counters_of(device).read(); }

}  // namespace gradus
