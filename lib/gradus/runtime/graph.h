// Work that is recorded once and queued again with one call, as torch.cuda.CUDAGraph.
#pragma once
#include <gradus/runtime/device_info.h>
#include <gradus/runtime/stream.h>

#include <optional>
#include <vector>

namespace gradus {

/// Kernels and copies of one device. Between capture_begin() and capture_end() a stream of the graph's own is
/// current, and what is queued there, and on streams that wait for it, is recorded instead of run. replay()
/// queues all of it as one launch.
///
/// A replay uses the addresses of the capture. Tensors made during the capture, on the graph's stream, are in
/// memory that belongs to the graph until it is destroyed or reset: it goes to nobody else and empty_cache()
/// leaves it; an output's values last until the next replay. Inputs are not the graph's: keep them alive, and
/// give them new values in place (copy_()). Values that the host knew at the capture, such as an optimizer's
/// step count or what a random generator drew, are the same in every replay.
///
/// The host cannot wait during a capture: synchronize(), item() and copies from and to pageable memory throw
/// E-CAPTURE, and spoil it. What is made on first use (caches, gradients) is better made before: run the work
/// once, then capture it. Not safe for several threads at once.
class Graph {
 public:
  explicit Graph(Device device = current_accelerator());
  /// As reset().
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// Throws E-CAPTURE for a graph that holds a capture, or where the device has no graphs (the cpu).
  void capture_begin();
  /// Throws E-CAPTURE if the capture was spoilt; the graph then is empty, and can try again.
  void capture_end();
  /// Queues the graph on the current stream. Throws E-CAPTURE for an empty graph.
  void replay();
  /// Waits for its replays and makes the graph empty.
  void reset() noexcept;

  bool is_capturing() const { return current_.has_value(); }
  Device device() const { return device_; }

 private:
  void give_back_stream() noexcept;

  Device device_;
  Stream stream_;  // while it captures or holds a capture
  void* handle_ = nullptr;
  std::optional<StreamGuard> current_;  // while it captures
  std::vector<Stream> replayed_on_;
};

/// Captures a scope: `{ GraphCapture capture(graph); y = model(x); }`. Its end throws as capture_end(),
/// unless an exception is on its way already.
class GraphCapture {
 public:
  explicit GraphCapture(Graph& graph);
  ~GraphCapture() noexcept(false);
  GraphCapture(const GraphCapture&) = delete;
  GraphCapture& operator=(const GraphCapture&) = delete;

 private:
  Graph& graph_;
  int exceptions_;
};

}  // namespace gradus
