// One DeviceCache per device, made when the device's first memory is asked for. The policy is described in
// device_cache.cpp.
#include <gradus/base/format.h>
#include <gradus/runtime/device_cache.h>

#include <atomic>

namespace gradus {
namespace runtime {
namespace {

constexpr int kMaxIndices = 128;  // what Device can hold

// Never destroyed: static tensors may be freed after everything else at the end of the process.
std::atomic<DeviceCache*> caches[kDeviceTypeCount][kMaxIndices];

std::atomic<DeviceCache*>& slot(Device device) {
  return caches[static_cast<int>(device.type())][device.index()];
}

[[gnu::noinline]] DeviceCache& make_cache(Device device) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  DeviceCache* cache = slot(device).load(std::memory_order_relaxed);
  if (!cache) {
    cache = new DeviceCache(backend(device), device);
    slot(device).store(cache, std::memory_order_release);
  }
  return *cache;
}

DeviceCache& cache_of(Device device) {
  DeviceCache* cache = slot(device).load(std::memory_order_acquire);
  return cache ? *cache : make_cache(device);
}

}  // namespace

Allocation allocate_memory(size_t bytes, const Stream& stream) {
  return cache_of(stream.device).allocate(bytes, stream.id);
}

void free_memory(const Allocation& allocation) noexcept {
  if (allocation.block) allocation.block->cache->free(allocation.block);
}

void record_stream(const Allocation& allocation, const Stream& stream) {
  if (allocation.block) allocation.block->cache->record_stream(allocation.block, stream);
}

}  // namespace runtime

// Questions about a device that was never used make no cache, and so no context on it.
MemoryStats memory_stats(Device device) {
  runtime::DeviceCache* cache = runtime::slot(device).load(std::memory_order_acquire);
  return cache ? cache->stats() : MemoryStats{};
}
int64_t memory_allocated(Device device) { return memory_stats(device).allocated; }
int64_t memory_reserved(Device device) { return memory_stats(device).reserved; }
int64_t max_memory_allocated(Device device) { return memory_stats(device).max_allocated; }
int64_t max_memory_reserved(Device device) { return memory_stats(device).max_reserved; }

void reset_peak_memory_stats(Device device) {
  if (auto* cache = runtime::slot(device).load(std::memory_order_acquire)) cache->reset_peak_stats();
}
void empty_cache(Device device) {
  if (auto* cache = runtime::slot(device).load(std::memory_order_acquire)) cache->empty_cache();
}

std::string memory_summary(Device device) {
  const MemoryStats s = memory_stats(device);
  return str("memory of ", device, ": allocated ", format_bytes(s.allocated), " (peak ",
             format_bytes(s.max_allocated), ") in ", s.allocation_count, " blocks, reserved ",
             format_bytes(s.reserved), " (peak ", format_bytes(s.max_reserved), ") in ", s.segments,
             " segments, largest free block ", format_bytes(s.largest_free_block));
}

}  // namespace gradus
