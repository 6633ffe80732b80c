#include <gradus/backends/sim/pinned_memory.h>
#include <sys/mman.h>

#include <cstdlib>
#include <mutex>

namespace gradus::sim {

void* PinnedMemory::allocate(size_t bytes) {
  constexpr size_t kHugePage = size_t{2} << 20;
  void* data = std::aligned_alloc(kHugePage, (bytes + kHugePage - 1) / kHugePage * kHugePage);
  if (!data) return nullptr;
  ::madvise(data, bytes, MADV_HUGEPAGE);
  std::unique_lock lock(mutex_);
  pieces_[reinterpret_cast<uintptr_t>(data)] = bytes;
  return data;
}

void PinnedMemory::free(void* data) noexcept {
  {
    std::unique_lock lock(mutex_);
    pieces_.erase(reinterpret_cast<uintptr_t>(data));
  }
  std::free(data);
}

bool PinnedMemory::holds(const void* data, size_t bytes) const {
  const auto address = reinterpret_cast<uintptr_t>(data);
  std::shared_lock lock(mutex_);
  auto after = pieces_.upper_bound(address);
  if (after == pieces_.begin()) return false;
  const auto& [begin, size] = *--after;
  return address - begin <= size && bytes <= size - (address - begin);
}

}  // namespace gradus::sim
