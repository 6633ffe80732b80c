// Host memory that the simulated devices copy without making the host wait.
#pragma once
#include <gradus/runtime/address_ranges.h>

#include <cstddef>

namespace gradus::sim {

class PinnedMemory {
 public:
  /// nullptr where the system has no more.
  void* allocate(size_t bytes);
  void free(void* data) noexcept;
  /// True if all of [data, data + bytes) is in one live piece.
  bool holds(const void* data, size_t bytes) const { return pieces_.hold(data, bytes); }

 private:
  runtime::AddressRanges pieces_;
};

}  // namespace gradus::sim
