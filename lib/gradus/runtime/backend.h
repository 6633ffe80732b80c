// What a device is: the calls a backend implements. Everything above (caching allocator, copies, prefetch,
// graphs) is written once against this class. To add one: a folder under backends/ and a line in its list.
#pragma once
#include <gradus/runtime/device_info.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace gradus {

struct Stream;
struct TensorArg;
enum class Access : uint8_t;

namespace runtime {

using gradus::DeviceProperties, gradus::MemoryInfo;

/// An operand inside a kernel's arguments.
struct TaskOperand {
  TensorArg* tensor;
  Access access;
};

/// A kernel with its arguments, for a backend that runs it later. The arguments may be copied byte by byte;
/// `run` and `operands` take any such copy.
struct KernelTask {
  const char* name;  ///< of the operation
  void (*run)(const void* arguments);
  /// Lists the operands (at most kMaxOperands) within the copy, so that a backend can check and translate
  /// their addresses; returns how many.
  int (*operands)(void* arguments, TaskOperand* list);
  const void* arguments;
  size_t bytes;
};

/// One backend serves all devices of its type. `index` is checked by the caller (0 <= index <
/// device_count()). Calls are safe from any thread. Failures throw gradus::Error unless a contract says
/// otherwise.
class Backend {
 public:
  virtual ~Backend() = default;

  /// Devices this process can use; 0 if none, with the reason in unavailable_reason().
  virtual int device_count() const = 0;
  /// Why device_count() is 0; "" if it is not.
  virtual std::string unavailable_reason() const = 0;
  virtual DeviceProperties properties(int index) const = 0;
  virtual MemoryInfo memory_info(int index) const = 0;

  /// Percent of the time since the call before in which the device was at work; -1 where it cannot tell.
  virtual int utilization(int index) = 0;
  /// What its sensors say; nothing where it has none.
  virtual Telemetry telemetry(int) { return {}; }

  /// Device memory, aligned to 512 bytes at least; nullptr when there is not enough. Contents undefined.
  virtual void* allocate(int index, size_t bytes) = 0;
  /// Gives back what allocate() returned. May block until the device is idle, as cudaFree does. Never throws.
  virtual void free(int index, void* data) noexcept = 0;
  /// Host memory that copies can read without staging ("pinned"); plain host memory where there is no such
  /// thing.
  virtual void* allocate_pinned(size_t bytes) = 0;
  virtual void free_pinned(void* data) noexcept = 0;
  /// True if all of [data, data + bytes) came from allocate_pinned().
  virtual bool is_pinned(const void* data, size_t bytes) const = 0;

  /// Copies bytes between this device and the host, or within the device or to a peer, in stream order.
  /// Blocks the host exactly when the real device would: always on the cpu; on the others until the copy is
  /// done where the host's side is pageable memory, and never otherwise.
  virtual void copy(void* to, Device to_device, const void* from, Device from_device, size_t bytes,
                    const Stream& stream) = 0;

  /// Makes a stream and returns its id; id 0 is the default stream and always exists. A `blocking` stream
  /// keeps CUDA's legacy rule: it and the default stream wait for each other's earlier work.
  virtual int64_t create_stream(int index, bool blocking) = 0;
  /// True when all work queued on the stream is done, running work included.
  virtual bool query(const Stream& stream) = 0;
  /// Blocks until the stream's work is done; throws the error it may have left.
  virtual void synchronize(const Stream& stream) = 0;
  virtual void synchronize_device(int index) = 0;

  /// An event, not yet recorded.
  virtual void* create_event(int index) = 0;
  virtual void destroy_event(int index, void* event) noexcept = 0;
  virtual void record(void* event, const Stream& stream) = 0;
  /// Makes later work on `stream` wait for the event's last record(); does not block the host.
  virtual void wait(void* event, const Stream& stream) = 0;
  virtual bool query_event(void* event) = 0;
  virtual void synchronize_event(void* event) = 0;
  /// Milliseconds between two recorded and completed events; throws E-EVENT for others.
  virtual double elapsed_ms(void* start, void* end) = 0;

  /// Runs a kernel in stream order. `launch()` is its only caller, and for queueing backends alone: a cpu
  /// kernel is called at once, and a cuda kernel function launches on the stream itself.
  virtual void run(const Stream& stream, const KernelTask& task) = 0;

  /// From here on work queued on `stream`, and on streams that come to wait for it, is recorded instead of
  /// run. Throws E-CAPTURE for the default stream and where the backend has no graphs.
  virtual void begin_capture(const Stream& stream) = 0;
  /// Ends it and returns the graph of what was recorded. Throws E-CAPTURE if a stream was not joined again or
  /// a call was made that cannot be recorded.
  virtual void* end_capture(const Stream& stream) = 0;
  virtual bool is_capturing(const Stream& stream) = 0;
  /// Queues the graph's work, as one piece, on `stream`.
  virtual void replay(void* graph, const Stream& stream) = 0;
  virtual void destroy_graph(void* graph) noexcept = 0;
};

/// The backend of a type, or nullptr where this build has none. Defined by backends/list.cpp.
Backend* find_backend(DeviceType type);
/// The backend of a device; throws E-DEVICE-UNAVAILABLE with the reason, or E-DEVICE-ORDINAL for a bad index.
Backend& backend(Device device);

}  // namespace runtime
}  // namespace gradus
