// The cache of one device's memory. Use it through caching_allocator.h; tests make their own.
#pragma once
#include <gradus/runtime/backend.h>
#include <gradus/runtime/block_pool.h>
#include <gradus/runtime/caching_allocator.h>

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

namespace gradus::runtime {

/// What a DeviceCache hands out: memory of the device, or host memory pinned for it.
enum class MemoryKind : uint8_t { device, pinned };
inline constexpr int kMemoryKindCount = 2;

/// A caching allocator. Thread-safe; calls the backend under its lock. Its memory is not given back when it
/// is destroyed: call empty_cache() first.
class DeviceCache {
 public:
  DeviceCache(Backend& backend, Device device, MemoryKind kind = MemoryKind::device)
      : backend_(backend), device_(device), kind_(kind) {}
  DeviceCache(const DeviceCache&) = delete;
  DeviceCache& operator=(const DeviceCache&) = delete;
  ~DeviceCache();

  /// See allocate_memory().
  Allocation allocate(size_t bytes, int64_t stream);
  void free(Block* block) noexcept;
  void record_stream(Block* block, const Stream& stream);

  MemoryStats stats();
  void reset_peak_stats();
  void empty_cache();

 private:
  struct Pending {
    void* event;
    Block* block;
  };
  struct StreamState {
    explicit StreamState(int64_t id) : id(id), small(id), large(id) {}
    int64_t id;
    BlockPool small, large;
    std::deque<Pending> pending;  // events recorded on this stream, in their order
  };

  StreamState& stream_state(int64_t id);
  // A free block, in its pool, by way of the device; nullptr when the device is full.
  Block* make_room(size_t size, BlockPool& pool);
  Block* new_segment(size_t size, BlockPool& pool);
  void release_segments();
  // Cuts `block` to `size` where the rest is worth keeping.
  void split(Block* block, size_t size);
  // Merges `block` with its free neighbours and puts the result into its pool.
  void return_to_pool(Block* block);
  void absorb(Block* block, Block* next);

  void record_events(Block* block);
  void collect_finished();
  void wait_for_pending();
  void finish_first(StreamState& state);

  [[noreturn]] void fail_out_of_memory(size_t bytes);
  size_t largest_free_block() const;

  Backend& backend_;
  const Device device_;
  const MemoryKind kind_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<StreamState>> streams_;
  int64_t pending_ = 0;  // in all streams
  std::vector<void*> spare_events_;
  BlockRecords records_;
  MemoryStats stats_;
};

/// The process's cache for a device, made on the first call; throws as backend() where there is no device.
DeviceCache& device_cache(Device device, MemoryKind kind = MemoryKind::device);

}  // namespace gradus::runtime
