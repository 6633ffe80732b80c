// Host memory that the simulated devices copy without making the host wait.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <shared_mutex>

namespace gradus::sim {

class PinnedMemory {
 public:
  /// nullptr where the system has no more.
  void* allocate(size_t bytes);
  void free(void* data) noexcept;
  /// True if all of [data, data + bytes) is in one live piece.
  bool holds(const void* data, size_t bytes) const;

 private:
  mutable std::shared_mutex mutex_;
  std::map<uintptr_t, size_t> pieces_;
};

}  // namespace gradus::sim
