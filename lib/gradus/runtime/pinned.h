// Pinned host memory, cached like device memory: locking pages takes a driver call that costs milliseconds.
#pragma once
#include <gradus/runtime/caching_allocator.h>

#include <cstddef>

namespace gradus {
namespace runtime {

/// At least `bytes` of host memory that all devices of `device`'s type copy from and to without staging. Hand
/// it back with free_memory(). Throws E-DEVICE-UNAVAILABLE or E-OUT-OF-MEMORY.
Allocation allocate_pinned(size_t bytes, Device device);

}  // namespace runtime

/// A piece of such memory: copies from and to it need not block the host. For the cpu it is plain memory.
/// Move-only. Tensors have pin_memory() (gradus/ops/transfer.h).
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  /// At least `bytes` bytes, undefined contents. Throws E-DEVICE-UNAVAILABLE or E-OUT-OF-MEMORY.
  PinnedBuffer(size_t bytes, Device device);
  ~PinnedBuffer();
  PinnedBuffer(PinnedBuffer&& other) noexcept;
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept;

  void* data() const { return allocation_.data; }
  size_t size() const { return size_; }
  /// Says that copies on `stream` use this memory: it is not handed out again, once this buffer is gone,
  /// before they are done.
  void record_stream(const Stream& stream);

 private:
  runtime::Allocation allocation_;
  size_t size_ = 0;
};

}  // namespace gradus
