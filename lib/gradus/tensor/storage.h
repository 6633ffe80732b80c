// The bytes behind tensors: owned by one allocation, shared by all views of it.
#pragma once
#include <gradus/base/intrusive_ptr.h>
#include <gradus/runtime/caching_allocator.h>
#include <gradus/runtime/device.h>

#include <atomic>
#include <cstdint>
#include <functional>

namespace gradus {

/// Device memory with a version counter. Views and detach() share it, so a saved tensor that was changed in
/// place through any of them is noticed.
class Storage : public RefCounted {
 public:
  /// `bytes` from the device's caching allocator, on the current stream; contents undefined.
  Storage(size_t bytes, Device device);
  /// Takes over an allocation, which need not be device memory (pinned memory is the cpu's).
  Storage(runtime::Allocation allocation, size_t bytes, Device device);
  /// Memory of somebody else's, given back with `deleter` (may be empty) when the last tensor on it is gone.
  Storage(void* data, size_t bytes, Device device, std::function<void(void*)> deleter);
  ~Storage();

  void* data() const { return allocation_.data; }
  size_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  /// Unique in the process, never 0.
  uint64_t id() const { return id_; }
  const runtime::Allocation& allocation() const { return allocation_; }

  uint32_t version() const { return version_.load(std::memory_order_relaxed); }
  void bump_version() { version_.fetch_add(1, std::memory_order_relaxed); }

 private:
  runtime::Allocation allocation_;
  size_t bytes_;
  uint64_t id_;
  std::atomic<uint32_t> version_{0};
  Device device_;
  std::function<void(void*)> deleter_;
};

}  // namespace gradus
