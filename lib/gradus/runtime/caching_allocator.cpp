// One DeviceCache per device, made when the device's first memory is asked for. The policy is described in
// device_cache.cpp.
#include <gradus/base/format.h>
#include <gradus/runtime/device_cache.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string_view>

namespace gradus {
namespace runtime {
namespace {

// Never destroyed: static tensors may be freed after everything else at the end of the process.
std::atomic<DeviceCache*> caches[kMemoryKindCount][kDeviceTypeCount][Device::kMaxIndices];

std::atomic<DeviceCache*>& slot(Device device, MemoryKind kind) {
  return caches[static_cast<int>(kind)][static_cast<int>(device.type())][device.index()];
}

// The cache, or nullptr: questions about a device that was never used make no context on it.
DeviceCache* find_cache(Device device) {
  return slot(device, MemoryKind::device).load(std::memory_order_acquire);
}

bool caches_memory() {
  const char* value = std::getenv("GRADUS_NO_MEMORY_CACHING");
  return !value || std::string_view(value) != "1";
}

[[gnu::noinline]] DeviceCache& make_cache(Device device, MemoryKind kind) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  std::atomic<DeviceCache*>& cache = slot(device, kind);
  if (!cache.load(std::memory_order_relaxed))
    cache.store(new DeviceCache(backend(device), device, kind, caches_memory()), std::memory_order_release);
  return *cache.load(std::memory_order_relaxed);
}

}  // namespace

DeviceCache& device_cache(Device device, MemoryKind kind) {
  if (kind == MemoryKind::pinned) device = Device(device.type());
  DeviceCache* cache = slot(device, kind).load(std::memory_order_acquire);
  return cache ? *cache : make_cache(device, kind);
}

Allocation allocate_memory(size_t bytes, const Stream& stream) {
  return device_cache(stream.device).allocate(bytes, stream.id);
}

void free_memory(const Allocation& allocation) noexcept {
  if (allocation.block) allocation.block->cache->free(allocation.block);
}

bool is_pinned(const Allocation& allocation) {
  return allocation.block && allocation.block->cache->kind() == MemoryKind::pinned;
}

void record_stream(const Allocation& allocation, const Stream& stream) {
  if (allocation.block) allocation.block->cache->record_stream(allocation.block, stream);
}

}  // namespace runtime

MemoryStats memory_stats(Device device) {
  runtime::DeviceCache* cache = runtime::find_cache(device);
  return cache ? cache->stats() : MemoryStats{};
}
int64_t memory_allocated(Device device) { return memory_stats(device).allocated; }
int64_t memory_reserved(Device device) { return memory_stats(device).reserved; }
int64_t max_memory_allocated(Device device) { return memory_stats(device).max_allocated; }
int64_t max_memory_reserved(Device device) { return memory_stats(device).max_reserved; }

void reset_peak_memory_stats(Device device) {
  if (auto* cache = runtime::find_cache(device)) cache->reset_peak_stats();
}
void empty_cache(Device device) {
  if (auto* cache = runtime::find_cache(device)) cache->empty_cache();
}

std::string memory_summary(Device device) {
  const MemoryStats s = memory_stats(device);
  return str("memory of ", device, ": allocated ", format_bytes(s.allocated), " (peak ",
             format_bytes(s.max_allocated), ") in ", s.allocation_count, " blocks, reserved ",
             format_bytes(s.reserved), " (peak ", format_bytes(s.max_reserved), ") in ", s.segments,
             " segments, largest free block ", format_bytes(s.largest_free_block));
}

}  // namespace gradus
