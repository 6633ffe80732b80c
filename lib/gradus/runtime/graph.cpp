#include <gradus/runtime/backend.h>
#include <gradus/runtime/device_cache.h>
#include <gradus/runtime/device_stats.h>
#include <gradus/runtime/graph.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <utility>

namespace gradus {
namespace {

using runtime::device_cache;
using runtime::MemoryKind;

// Streams live as long as the process, so a graph leaves its stream to the next, and its memory with it.
class SpareStreams {
 public:
  Stream take(Device device) {
    {
      std::lock_guard lock(mutex_);
      // The last one first: its memory is the likeliest to fit.
      for (auto it = streams_.end(); it != streams_.begin();) {
        if ((--it)->device != device) continue;
        const Stream stream = *it;
        streams_.erase(it);
        return stream;
      }
    }
    return Stream::create(device);
  }
  void give_back(const Stream& stream) {
    std::lock_guard lock(mutex_);
    streams_.push_back(stream);
  }

 private:
  std::mutex mutex_;
  std::vector<Stream> streams_;
};

SpareStreams& spare_streams() {
  static auto* streams = new SpareStreams;  // never destroyed: static graphs may be later
  return *streams;
}

void end_capture_in_caches(Device device) noexcept {
  for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned})
    device_cache(device, kind).end_capture();
}

}  // namespace

Graph::Graph(Device device) : device_(device) {
  runtime::backend(device);  // throws where it is not there
}

Graph::~Graph() { reset(); }

void Graph::capture_begin() {
  GRADUS_CHECK(!handle_ && !is_capturing(), "E-CAPTURE", "Graph: capture_begin: this graph ",
               handle_ ? "holds a capture already" : "is capturing",
               hint("make another Graph, or reset() this one first"));
  stream_ = spare_streams().take(device_);
  try {
    runtime::backend(device_).begin_capture(stream_);
  } catch (...) {
    spare_streams().give_back(stream_);
    throw;
  }
  for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned})
    device_cache(device_, kind).begin_capture(stream_.id);
  current_.emplace(stream_);
}

void Graph::capture_end() {
  GRADUS_CHECK(is_capturing(), "E-CAPTURE", "Graph: capture_end: this graph is not capturing",
               hint("call capture_begin() first"));
  current_.reset();
  try {
    handle_ = runtime::backend(device_).end_capture(stream_);
  } catch (...) {
    end_capture_in_caches(device_);
    give_back_stream();
    throw;
  }
  end_capture_in_caches(device_);
}

void Graph::replay() {
  GRADUS_CHECK(handle_, "E-CAPTURE", "Graph: replay: this graph is empty",
               hint("capture something between capture_begin() and capture_end() first"));
  const Stream stream = current_stream(device_);
  runtime::backend(device_).replay(handle_, stream);
  detail::count(detail::counters_of(device_).launches);
  if (std::find(replayed_on_.begin(), replayed_on_.end(), stream) == replayed_on_.end())
    replayed_on_.push_back(stream);
}

void Graph::reset() noexcept {
  if (is_capturing()) {
    try {
      capture_end();
    } catch (const Error&) {  // it was spoilt, and nobody will replay it
    }
  }
  if (!handle_) return;
  for (const Stream& stream : replayed_on_) {
    try {
      stream.synchronize();
    } catch (const Error&) {  // the device has failed, and the next call that may throw says so
    }
  }
  replayed_on_.clear();
  runtime::find_backend(device_.type())->destroy_graph(std::exchange(handle_, nullptr));
  give_back_stream();
}

void Graph::give_back_stream() noexcept {
  for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned})
    device_cache(device_, kind).release_capture(stream_.id);
  spare_streams().give_back(stream_);
}

GraphCapture::GraphCapture(Graph& graph) : graph_(graph), exceptions_(std::uncaught_exceptions()) {
  graph_.capture_begin();
}

GraphCapture::~GraphCapture() noexcept(false) {
  if (std::uncaught_exceptions() > exceptions_) {
    graph_.reset();
  } else {
    graph_.capture_end();
  }
}

}  // namespace gradus
