// The part of DeviceCache that waits: blocks which other streams used, and graph captures, which forbid
// asking.
#include <gradus/base/error.h>
#include <gradus/runtime/device_cache.h>

#include <algorithm>

namespace gradus::runtime {

void DeviceCache::record_stream(Block* block, const Stream& stream) {
  std::lock_guard lock(mutex_);
  const bool pinned = kind_ == MemoryKind::pinned;  // for every device of the type
  GRADUS_CHECK(pinned ? stream.device.type() == device_.type() : stream.device == device_,
               "E-DEVICE-MISMATCH", "record_stream: the memory is ", pinned ? "pinned for " : "on ", device_,
               ", the stream on ", stream.device);
  if (!pinned && stream.id == block->pool->stream) return;
  if (std::find(block->users.begin(), block->users.end(), stream) == block->users.end())
    block->users.push_back(stream);
}

void* DeviceCache::take_event(Device device) {
  for (auto& spare : spare_events_)
    if (spare.first == device) {
      void* event = spare.second;
      spare = spare_events_.back();
      spare_events_.pop_back();
      return event;
    }
  return backend_.create_event(device.index());
}

void DeviceCache::record_events(Block* block) {
  ++block->pending_events;  // until all are recorded, so that a failure keeps the block out of use
  for (const Stream& stream : block->users) {
    void* event = take_event(stream.device);
    try {
      backend_.record(event, stream);
    } catch (...) {
      spare_events_.emplace_back(stream.device, event);
      throw;
    }
    stream_state(stream).pending.push_back({event, block});
    ++block->pending_events;
    ++pending_;
  }
  block->users.clear();
  --block->pending_events;
}

void DeviceCache::record_events_of_freed(Block* block) noexcept {
  try {
    record_events(block);
    collect_finished();
  } catch (const Error&) {
    // The device has failed, and the next call that may throw says so. The block stays out of use.
  }
}

void DeviceCache::collect_finished() {
  if (captures_ > 0) return;
  for (const auto& state : streams_)
    while (!state->pending.empty() && backend_.query_event(state->pending.front().event))
      finish_first(*state);
}

void DeviceCache::wait_for_pending() {
  if (captures_ > 0) return;
  for (const auto& state : streams_)
    while (!state->pending.empty()) {
      backend_.synchronize_event(state->pending.front().event);
      finish_first(*state);
    }
}

void DeviceCache::finish_first(StreamState& state) {
  const auto [event, block] = state.pending.front();
  state.pending.pop_front();
  --pending_;
  spare_events_.emplace_back(state.stream.device, event);
  if (--block->pending_events == 0) return_to_pool(block);
}

void DeviceCache::begin_capture(int64_t stream) {
  std::lock_guard lock(mutex_);
  ++stream_state({device_, stream}).graphs;
  ++captures_;
}

void DeviceCache::end_capture() noexcept {
  std::lock_guard lock(mutex_);
  if (--captures_ > 0) return;
  for (Block* block : std::exchange(freed_late_, {})) record_events_of_freed(block);
}

void DeviceCache::release_capture(int64_t stream) noexcept {
  std::lock_guard lock(mutex_);
  --stream_state({device_, stream}).graphs;
}

}  // namespace gradus::runtime
