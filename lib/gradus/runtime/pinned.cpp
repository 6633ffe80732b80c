#include <gradus/runtime/device_cache.h>
#include <gradus/runtime/pinned.h>

#include <utility>

namespace gradus {

runtime::Allocation runtime::allocate_pinned(size_t bytes, Device device) {
  backend(device);  // throws where it is not there
  return device_cache(device, MemoryKind::pinned).allocate(bytes, 0);
}

PinnedBuffer::PinnedBuffer(size_t bytes, Device device)
    : allocation_(runtime::allocate_pinned(bytes, device)), size_(bytes) {}

PinnedBuffer::~PinnedBuffer() { runtime::free_memory(allocation_); }

PinnedBuffer::PinnedBuffer(PinnedBuffer&& other) noexcept
    : allocation_(std::exchange(other.allocation_, {})), size_(std::exchange(other.size_, 0)) {}

PinnedBuffer& PinnedBuffer::operator=(PinnedBuffer&& other) noexcept {
  std::swap(allocation_, other.allocation_);
  std::swap(size_, other.size_);
  return *this;
}

void PinnedBuffer::record_stream(const Stream& stream) { runtime::record_stream(allocation_, stream); }

}  // namespace gradus
