#include <gradus/backends/sim/memory.h>
#include <gradus/base/error.h>
#include <gradus/base/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <mutex>

namespace gradus::sim {
namespace {

constexpr size_t kSegmentAlignment = size_t{2} << 20;  // a huge page

// Straight to the kernel: sanitizers' mmap() would prepare shadow memory for the whole range.
uintptr_t reserve(size_t bytes) {
  const long address = ::syscall(SYS_mmap, nullptr, bytes + kSegmentAlignment, PROT_NONE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  GRADUS_CHECK(address != -1, "E-OUT-OF-MEMORY", "sim: the system refused to reserve ",
               format_bytes(static_cast<int64_t>(bytes)), " of address space",
               hint("raise the limit on address space (ulimit -v unlimited)"));
  return (static_cast<uintptr_t>(address) + kSegmentAlignment - 1) / kSegmentAlignment * kSegmentAlignment;
}

size_t round_to_pages(size_t bytes) {
  return (bytes + kSegmentAlignment - 1) / kSegmentAlignment * kSegmentAlignment;
}

}  // namespace

DeviceMemory::DeviceMemory() : front_(reserve(kMaxDevices * kMostPerDevice)) {
  distance_ = static_cast<ptrdiff_t>(reserve(kMaxDevices * kMostPerDevice) - front_);
}

// The lowest gap that fits; 0 if there is none. Segments are few: the caching allocator makes them.
uintptr_t DeviceMemory::find_gap(int device, size_t bytes) const {
  uintptr_t candidate = first_address(device);
  for (const auto& [begin, size] : devices_[device].segments) {
    if (begin - candidate >= bytes) return candidate;
    candidate = begin + round_to_pages(size);
  }
  return first_address(device) + kMostPerDevice - candidate >= bytes ? candidate : 0;
}

void* DeviceMemory::allocate(int device, size_t bytes, size_t capacity) {
  std::unique_lock lock(mutex_);
  Device& d = devices_[device];
  if (bytes > capacity || d.used > capacity - bytes) return nullptr;
  const size_t pages = round_to_pages(bytes);
  const uintptr_t address = find_gap(device, pages);
  if (!address) return nullptr;
  void* behind = reinterpret_cast<void*>(address + static_cast<uintptr_t>(distance_));
  if (::mprotect(behind, pages, PROT_READ | PROT_WRITE) != 0) return nullptr;
  ::madvise(behind, pages, MADV_HUGEPAGE);  // as on the cpu: page faults on fresh memory cost milliseconds
  d.segments[address] = bytes;
  d.used += bytes;
  return reinterpret_cast<void*>(address);
}

size_t DeviceMemory::free(int device, void* data) noexcept {
  std::unique_lock lock(mutex_);
  Device& d = devices_[device];
  const auto segment = d.segments.find(reinterpret_cast<uintptr_t>(data));
  if (segment == d.segments.end()) return 0;
  const size_t size = segment->second, pages = round_to_pages(size);
  ::madvise(bytes(data), pages, MADV_DONTNEED);
  ::mprotect(bytes(data), pages, PROT_NONE);
  d.used -= size;
  d.segments.erase(segment);
  return size;
}

size_t DeviceMemory::used(int device) const {
  std::shared_lock lock(mutex_);
  return devices_[device].used;
}

bool DeviceMemory::holds(int device, const void* data, size_t bytes) const {
  const uintptr_t address = reinterpret_cast<uintptr_t>(data);
  std::shared_lock lock(mutex_);
  const auto& segments = devices_[device].segments;
  auto after = segments.upper_bound(address);
  if (after == segments.begin()) return false;
  const auto& [begin, size] = *--after;
  return address - begin <= size && bytes <= size - (address - begin);
}

}  // namespace gradus::sim
