// The cache of one device's memory. Use it through caching_allocator.h; tests make their own.
#pragma once
#include <gradus/runtime/backend.h>
#include <gradus/runtime/block_pool.h>
#include <gradus/runtime/caching_allocator.h>

#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace gradus::runtime {

/// What a DeviceCache hands out: memory of the device, or host memory pinned for it.
enum class MemoryKind : uint8_t { device, pinned };
inline constexpr int kMemoryKindCount = 2;

/// A caching allocator. Thread-safe; calls the backend under its lock. Its memory is not given back when it
/// is destroyed: call empty_cache() first. One that caches nothing asks the device for each request, for
/// exactly what is wanted, and gives it back when it is freed: so tools find who writes over the end.
class DeviceCache {
 public:
  DeviceCache(Backend& backend, Device device, MemoryKind kind = MemoryKind::device, bool caches = true)
      : backend_(backend), device_(device), kind_(kind), caches_(caches) {}
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
  MemoryKind kind() const { return kind_; }

  /// A graph's capture on `stream` begins. Until it ends no event is recorded or asked, since a capturing
  /// device refuses both; blocks that wait for one wait longer. The free memory of the stream stays until
  /// release_capture(): the graph's replays use it.
  void begin_capture(int64_t stream);
  void end_capture() noexcept;
  void release_capture(int64_t stream) noexcept;

 private:
  struct Pending {
    void* event;
    Block* block;
  };
  struct StreamState {
    explicit StreamState(const Stream& stream) : stream(stream), small(stream.id), large(stream.id) {}
    const Stream stream;
    BlockPool small, large;
    std::deque<Pending> pending;  // events recorded on this stream, in their order
    int graphs = 0;               // that use its memory
  };

  StreamState& stream_state(const Stream& stream);
  size_t segment_size(size_t size) const;
  // A free block, in its pool, by way of the device; nullptr when the device is full.
  Block* make_room(size_t size, BlockPool& pool);
  Block* new_segment(size_t bytes, BlockPool& pool);
  void release_segments();
  void release_segment(Block* block);
  // Cuts `block` to `size` where the rest is worth keeping.
  void split(Block* block, size_t size);
  // Merges `block` with its free neighbours and puts the result into its pool.
  void return_to_pool(Block* block);
  void absorb(Block* block, Block* next);

  void* take_event(Device device);
  void record_events(Block* block);
  void record_events_of_freed(Block* block) noexcept;
  void collect_finished();
  void wait_for_pending();
  void finish_first(StreamState& state);

  [[noreturn]] void fail_out_of_memory(size_t bytes);
  size_t largest_free_block() const;

  Backend& backend_;
  const Device device_;
  const MemoryKind kind_;
  const bool caches_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<StreamState>> streams_;
  int64_t pending_ = 0;             // in all streams
  int captures_ = 0;                // underway
  std::vector<Block*> freed_late_;  // during a capture, by streams whose events are recorded after it
  std::vector<std::pair<Device, void*>> spare_events_;
  BlockRecords records_;
  MemoryStats stats_;
};

/// The process's cache for a device, made on the first call; throws as backend() where there is no device.
/// Pinned memory serves all devices of a type: its one cache is that of index 0.
DeviceCache& device_cache(Device device, MemoryKind kind = MemoryKind::device);

}  // namespace gradus::runtime
