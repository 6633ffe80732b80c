// The policy, which is PyTorch's:
//  - A request is rounded up to a multiple of 512 bytes.
//  - Requests up to 1 MiB are small: they are cut from segments of 2 MiB. Larger ones below 10 MiB are cut
//  from
//    segments of 20 MiB; from 10 MiB on a request gets a segment of its own, rounded up to 2 MiB.
//  - Each stream has its own small and large pool. Work on a stream is in order, so a block can be reused on
//    its own stream at once, without asking the device.
//  - The smallest free block that fits is taken. What it has too much is split off if that is 512 bytes
//    (small) or more than 1 MiB (large). A freed block is merged with free neighbours of its segment.
//  - A block that other streams used (record_stream) gets an event on each of them when it is freed, and
//    returns to its pool when all of these have passed.
//  - The pools of a stream that a graph was captured on are the graph's own: they stay while it lives.
//  - Freed memory stays reserved. When the device is full, pending events are waited for, unused segments
//    are given back and the request is tried once more before the error.
// One difference: "allocated" counts what requests were rounded to; PyTorch counts the unsplit rest too.
#include <gradus/base/format.h>
#include <gradus/runtime/device_cache.h>
#include <gradus/runtime/device_stats.h>

#include <algorithm>
#include <limits>

#if defined(__SANITIZE_ADDRESS__)
#define GRADUS_POISON 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GRADUS_POISON 1
#endif
#endif
#ifdef GRADUS_POISON
#include <sanitizer/asan_interface.h>
#endif

namespace gradus::runtime {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kSmallRequest = kMiB;
constexpr size_t kSmallSegment = 2 * kMiB;
constexpr size_t kLargeSegment = 20 * kMiB;
constexpr size_t kOwnSegment = 10 * kMiB;  // requests from here on get a segment of their own
constexpr size_t kLargestRequest = size_t{1} << 62;

constexpr size_t round_up(size_t n, size_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// Under AddressSanitizer the cpu's free blocks are out of bounds, as if they had been given to free().
void forbid([[maybe_unused]] Device device, [[maybe_unused]] void* data, [[maybe_unused]] size_t bytes) {
#ifdef GRADUS_POISON
  if (device.is_cpu()) __asan_poison_memory_region(data, bytes);
#endif
}
void permit([[maybe_unused]] Device device, [[maybe_unused]] void* data, [[maybe_unused]] size_t bytes) {
#ifdef GRADUS_POISON
  if (device.is_cpu()) __asan_unpoison_memory_region(data, bytes);
#endif
}

}  // namespace

DeviceCache::~DeviceCache() {
  for (const auto& [device, event] : spare_events_) backend_.destroy_event(device.index(), event);
}

Allocation DeviceCache::allocate(size_t bytes, int64_t stream) {
  if (bytes == 0) return {};
  std::lock_guard lock(mutex_);
  if (bytes > kLargestRequest) fail_out_of_memory(bytes);
  if (pending_ > 0) collect_finished();

  const size_t size = caches_ ? round_up(bytes, kBlockUnit) : bytes;
  StreamState& state = stream_state({device_, stream});
  BlockPool& pool = size <= kSmallRequest ? state.small : state.large;
  Block* block = pool.best_fit(size);
  if (block) [[likely]] {
    ++stats_.cache_hits;
  } else {
    block = make_room(size, pool);
    if (!block) fail_out_of_memory(bytes);
  }
  pool.remove(block);
  split(block, size);

  block->used = size;
  stats_.allocated += static_cast<int64_t>(size);
  stats_.max_allocated = std::max(stats_.max_allocated, stats_.allocated);
  ++stats_.allocation_count;
  permit(device_, block->data, bytes);
  return {block->data, block};
}

void DeviceCache::free(Block* block) noexcept {
  std::lock_guard lock(mutex_);
  stats_.allocated -= static_cast<int64_t>(block->used);
  --stats_.allocation_count;
  block->used = 0;
  forbid(device_, block->data, block->size);
  if (block->users.empty()) [[likely]]
    return return_to_pool(block);
  if (captures_ > 0) {
    freed_late_.push_back(block);
  } else {
    record_events_of_freed(block);
  }
}

void DeviceCache::empty_cache() {
  std::lock_guard lock(mutex_);
  wait_for_pending();
  release_segments();
}

MemoryStats DeviceCache::stats() {
  std::lock_guard lock(mutex_);
  stats_.largest_free_block = static_cast<int64_t>(largest_free_block());
  return stats_;
}

void DeviceCache::reset_peak_stats() {
  std::lock_guard lock(mutex_);
  stats_.max_allocated = stats_.allocated;
  stats_.max_reserved = stats_.reserved;
}

DeviceCache::StreamState& DeviceCache::stream_state(const Stream& stream) {
  for (const auto& state : streams_)
    if (state->stream == stream) return *state;
  streams_.push_back(std::make_unique<StreamState>(stream));
  return *streams_.back();
}

size_t DeviceCache::segment_size(size_t size) const {
  if (!caches_) return size;
  if (size <= kSmallRequest) return kSmallSegment;
  return size < kOwnSegment ? kLargeSegment : round_up(size, kSmallSegment);
}

Block* DeviceCache::make_room(size_t size, BlockPool& pool) {
  ++stats_.cache_misses;
  if (Block* block = new_segment(segment_size(size), pool)) return block;
  ++stats_.retries;
  wait_for_pending();
  if (Block* block = pool.best_fit(size)) return block;
  release_segments();
  Block* block = new_segment(segment_size(size), pool);
  return block ? block : new_segment(size, pool);  // the last memory there is, without any to spare
}

Block* DeviceCache::new_segment(size_t bytes, BlockPool& pool) {
  detail::count(detail::counters_of(device_).driver_allocations);
  void* data = kind_ == MemoryKind::device ? backend_.allocate(device_.index(), bytes)
                                           : backend_.allocate_pinned(bytes);
  if (!data) return nullptr;
  forbid(device_, data, bytes);
  stats_.reserved += static_cast<int64_t>(bytes);
  stats_.max_reserved = std::max(stats_.max_reserved, stats_.reserved);
  ++stats_.segments;
  Block* block = records_.make();
  block->data = static_cast<std::byte*>(data);
  block->size = bytes;
  block->pool = &pool;
  block->cache = this;
  pool.insert(block);
  return block;
}

void DeviceCache::release_segments() {
  for (const auto& state : streams_)
    if (state->graphs == 0)
      for (BlockPool* pool : {&state->small, &state->large})
        for (Block* block : pool->whole_segments()) release_segment(block);
}

void DeviceCache::release_segment(Block* block) {
  block->pool->remove(block);
  permit(device_, block->data, block->size);
  detail::count(detail::counters_of(device_).driver_frees);
  if (kind_ == MemoryKind::device) {
    backend_.free(device_.index(), block->data);
  } else {
    backend_.free_pinned(block->data);
  }
  stats_.reserved -= static_cast<int64_t>(block->size);
  --stats_.segments;
  records_.recycle(block);
}

void DeviceCache::split(Block* block, size_t size) {
  const size_t rest = block->size - size;
  const size_t worth_keeping = size <= kSmallRequest ? kBlockUnit : kSmallRequest + 1;
  if (rest < worth_keeping) return;
  Block* tail = records_.make();
  tail->data = block->data + size;
  tail->size = rest;
  tail->pool = block->pool;
  tail->cache = this;
  tail->before = block;
  tail->after = block->after;
  if (tail->after) tail->after->before = tail;
  block->after = tail;
  block->size = size;
  tail->pool->insert(tail);
}

void DeviceCache::return_to_pool(Block* block) {
  BlockPool& pool = *block->pool;
  if (Block* after = block->after; after && after->is_free) {
    pool.remove(after);
    absorb(block, after);
  }
  if (Block* before = block->before; before && before->is_free) {
    pool.remove(before);
    absorb(before, block);
    block = before;
  }
  pool.insert(block);
  if (!caches_ && captures_ == 0 && stream_state({device_, pool.stream}).graphs == 0) release_segment(block);
}

void DeviceCache::absorb(Block* block, Block* next) {
  block->size += next->size;
  block->after = next->after;
  if (block->after) block->after->before = block;
  records_.recycle(next);
}

size_t DeviceCache::largest_free_block() const {
  size_t largest = 0;
  for (const auto& state : streams_)
    largest = std::max({largest, state->small.largest(), state->large.largest()});
  return largest;
}

void DeviceCache::fail_out_of_memory(size_t bytes) {
  ++stats_.ooms;
  const auto tried = static_cast<int64_t>(std::min<size_t>(bytes, std::numeric_limits<int64_t>::max()));
  const bool pinned = kind_ == MemoryKind::pinned;
  const MemoryInfo info = pinned ? backend(Device()).memory_info(0) : backend_.memory_info(device_.index());
  const auto capacity = static_cast<int64_t>(info.total), free = static_cast<int64_t>(info.free);
  const int64_t unallocated = stats_.reserved - stats_.allocated;
  const int64_t others = std::max<int64_t>(0, capacity - free - stats_.reserved);
  const char* remedy = "use a smaller batch, checkpoint(), or a smaller dtype, or free tensors that are done";
  if (tried > capacity) {
    remedy = "this request alone is larger than the device: make the tensor smaller or split it";
  } else if (unallocated + free >= tried) {
    remedy = "the free memory is in pieces: make the largest tensors first, and free those beside the gaps";
  } else if (others >= tried) {
    remedy = "other programs hold much of the device: end them or choose another device";
  }
  GRADUS_FAIL("E-OUT-OF-MEMORY", "allocate: ", device_, pinned ? " pinned host memory" : "",
              " out of memory. Tried to allocate ", format_bytes(tried),
              "; the device has a total capacity of ", format_bytes(capacity), " of which ",
              format_bytes(free), " is free. ", format_bytes(stats_.allocated),
              " is allocated by live tensors, ", format_bytes(unallocated),
              " is reserved but unallocated; the largest free block is ",
              format_bytes(static_cast<int64_t>(largest_free_block())), ".", hint(remedy));
}

}  // namespace gradus::runtime
