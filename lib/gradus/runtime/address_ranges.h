// Which pieces of memory a backend has handed out, by address.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <shared_mutex>

namespace gradus::runtime {

/// Safe to use from several threads.
class AddressRanges {
 public:
  void add(const void* data, size_t bytes) {
    std::unique_lock lock(mutex_);
    bytes_[reinterpret_cast<uintptr_t>(data)] = bytes;
  }
  void remove(const void* data) {
    std::unique_lock lock(mutex_);
    bytes_.erase(reinterpret_cast<uintptr_t>(data));
  }
  /// True if all of [data, data + bytes) lies in one piece.
  bool hold(const void* data, size_t bytes) const {
    const auto address = reinterpret_cast<uintptr_t>(data);
    std::shared_lock lock(mutex_);
    auto after = bytes_.upper_bound(address);
    if (after == bytes_.begin()) return false;
    const auto& [begin, size] = *--after;
    return address - begin <= size && bytes <= size - (address - begin);
  }

 private:
  mutable std::shared_mutex mutex_;
  std::map<uintptr_t, size_t> bytes_;
};

}  // namespace gradus::runtime
