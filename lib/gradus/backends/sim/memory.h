// The memory of all simulated devices: addresses that the host cannot touch, and the bytes behind them.
//
// A device address lies in a range that faults on any access. Its byte lies in a second range at a constant
// distance; only the engines, which run kernels and copies, add that distance. Nothing is mapped or
// protected per kernel.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <shared_mutex>

namespace gradus::sim {

class DeviceMemory {
 public:
  static constexpr int kMaxDevices = 8;
  static constexpr size_t kMostPerDevice = size_t{16} << 30;

  /// Reserves the address ranges; throws E-OUT-OF-MEMORY where the system refuses.
  DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /// A new segment, or nullptr if `device` would then hold more than `capacity` bytes.
  void* allocate(int device, size_t bytes, size_t capacity);
  /// Returns the segment's size; 0 if there was none.
  size_t free(int device, void* data) noexcept;
  /// Bytes that `device` has handed out.
  size_t used(int device) const;

  /// The first address of device 0; device i's are i * kMostPerDevice further on.
  uintptr_t begin() const { return front_; }
  /// True if [data, data + bytes) lies in one live segment of `device`.
  bool holds(int device, const void* data, size_t bytes) const;
  /// Where the bytes of a device address are.
  std::byte* bytes(const void* data) const {
    return static_cast<std::byte*>(const_cast<void*>(data)) + distance_;
  }

 private:
  struct Device {
    std::map<uintptr_t, size_t> segments;
    size_t used = 0;
  };
  uintptr_t first_address(int device) const {
    return front_ + static_cast<uintptr_t>(device) * kMostPerDevice;
  }
  uintptr_t find_gap(int device, size_t bytes) const;

  uintptr_t front_;
  ptrdiff_t distance_;
  mutable std::shared_mutex mutex_;
  Device devices_[kMaxDevices];
};

}  // namespace gradus::sim
