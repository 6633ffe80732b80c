// Streams: queues of work on a device, each in order, different ones in none.
#pragma once
#include <gradus/runtime/device.h>

#include <cstdint>

namespace gradus {

/// A queue on a device. Copying the handle does not copy the queue. The cpu runs its streams' work at once.
struct Stream {
  Device device;
  int64_t id = 0;  ///< 0: the default stream

  /// A new stream, as torch.cuda.Stream(): nothing orders it and the default stream but events. It lives as
  /// long as the process.
  static Stream create(Device device);
  /// A stream as cudaStreamCreate() makes it: it and the default stream wait for each other's earlier work.
  static Stream create_blocking(Device device);
  /// True when all work queued so far is done, running work included. Throws the error that earlier work left
  /// on the device, and E-CAPTURE while the stream is captured.
  bool query() const;
  /// Blocks until then; throws as query().
  void synchronize() const;
  /// Makes later work on this stream wait for all that is queued on `other` now.
  void wait_stream(const Stream& other) const;
  friend bool operator==(const Stream&, const Stream&) = default;
};

/// The stream that operations of the calling thread go to; the default stream unless a StreamGuard is alive.
Stream current_stream(Device device);

/// Makes `stream` current for its device on this thread, and its device the current one, as
/// `with torch.cuda.stream(s):`.
class StreamGuard {
 public:
  explicit StreamGuard(Stream stream);
  ~StreamGuard();
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  Stream before_;
  Device device_before_;
};

/// A point in a stream, as torch.cuda.Event.
class Event {
 public:
  explicit Event(Device device);
  ~Event();
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;

  /// Marks the point that `stream` has reached. Throws E-EVENT for a stream of another device.
  void record(const Stream& stream);
  void record() { record(current_stream(device_)); }
  /// Makes later work on `stream` wait for this point; the host does not wait.
  void wait(const Stream& stream) const;
  /// True when the point was passed; true too if it was never recorded, as in CUDA.
  bool query() const;
  void synchronize() const;
  /// Milliseconds from this event to `end`; throws E-EVENT unless both were recorded, outside of a capture,
  /// and have passed.
  double elapsed_time(const Event& end) const;

 private:
  void* handle() const;  // throws E-UNDEFINED after a move
  Device device_;
  void* handle_;
};

}  // namespace gradus
