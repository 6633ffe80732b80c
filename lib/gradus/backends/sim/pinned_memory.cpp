#include <gradus/backends/sim/pinned_memory.h>
#include <sys/mman.h>

#include <cstdlib>

namespace gradus::sim {

void* PinnedMemory::allocate(size_t bytes) {
  constexpr size_t kHugePage = size_t{2} << 20;
  void* data = std::aligned_alloc(kHugePage, (bytes + kHugePage - 1) / kHugePage * kHugePage);
  if (!data) return nullptr;
  ::madvise(data, bytes, MADV_HUGEPAGE);
  pieces_.add(data, bytes);
  return data;
}

void PinnedMemory::free(void* data) noexcept {
  pieces_.remove(data);
  std::free(data);
}

}  // namespace gradus::sim
