// The functions of CUDA's runtime that the backend calls. What each returns, and when, is the
// documentation's: CUDA runtime API ("may also return error codes from previous, asynchronous launches") and
// the programming guide's chapters on streams, events and graphs.
#include <cuda_on_host/machine.h>
#include <cuda_on_host/runtime.h>
#include <cuda_runtime_api.h>
#include <gradus/backends/cuda/errors.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

using gradus::cuda_on_host::Capture;
using gradus::cuda_on_host::current_device;
using gradus::cuda_on_host::DonePtr;
using gradus::cuda_on_host::Event;
using gradus::cuda_on_host::Graph;
using gradus::cuda_on_host::machine;
using gradus::cuda_on_host::Machine;
using gradus::cuda_on_host::Stream;

namespace {

thread_local cudaError_t last_error = cudaSuccess;

cudaError_t answer(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) last_error = error;
  return error;
}

// Under the lock: a fault that a test has asked for, or the error that sticks to the device.
cudaError_t trouble(Machine& m, const char* function, int device = current_device) {
  if (m.count_error) return static_cast<cudaError_t>(m.count_error);
  if (auto at = m.injected.find(function); at != m.injected.end() && at->second.first > 0) {
    --at->second.first;
    return static_cast<cudaError_t>(at->second.second);
  }
  if (device < 0 || device >= m.device_count()) return cudaErrorInvalidDevice;
  return static_cast<cudaError_t>(m.errors[static_cast<size_t>(device)]);
}

// Begins a function: takes the lock, and returns at once with what is wrong.
#define BEGIN(name)               \
  Machine& m = machine();         \
  std::unique_lock lock(m.mutex); \
  if (const cudaError_t error = trouble(m, name); error != cudaSuccess) return answer(error)
// For one that is about a stream.
#define BEGIN_STREAM(name, handle)                                                                   \
  Machine& m = machine();                                                                            \
  std::unique_lock lock(m.mutex);                                                                    \
  Stream* stream = m.count_error ? nullptr : m.find(handle);                                         \
  if (!m.count_error && !stream) return answer(cudaErrorInvalidResourceHandle);                      \
  if (const cudaError_t error = trouble(m, name, stream ? stream->device : 0); error != cudaSuccess) \
  return answer(error)

// Records work in a capture, or queues it.
cudaError_t add(Machine& m, Stream& stream, std::function<void()> work) {
  if (stream.capture) {
    if (stream.capture->invalid) return cudaErrorStreamCaptureInvalidated;
    stream.capture->work.push_back(std::move(work));
    ++stream.capture->members[&stream][&stream];
    return cudaSuccess;
  }
  // The legacy stream would wait for the blocking ones, and a capture cannot be waited for.
  if (stream.is_default) {
    for (const auto& other : m.streams[static_cast<size_t>(stream.device)]) {
      if (!other->blocking || !other->capture) continue;
      other->capture->invalid = true;
      return cudaErrorStreamCaptureImplicit;
    }
  }
  m.submit(stream, std::move(work));
  return cudaSuccess;
}

bool launch_blocking() {
  const char* value = std::getenv("CUDA_LAUNCH_BLOCKING");
  return value && *value == '1';
}

}  // namespace

namespace gradus::cuda_on_host {

int enqueue(void* handle, std::function<void()> work) {
  BEGIN_STREAM("launch", handle);
  const cudaError_t added = add(m, *stream, std::move(work));
  if (added != cudaSuccess || stream->capture || !launch_blocking()) return answer(added);
  m.wait(lock, stream->last);
  return answer(static_cast<cudaError_t>(m.errors[static_cast<size_t>(stream->device)]));
}

int launch(void* stream, const kernels::LaunchShape& shape, std::function<void()> work) {
  constexpr size_t kMostShared = 227 * 1024;  // of sm_90
  if (shape.grid == 0 || shape.block < 1 || shape.block > kernels::kMaxBlockSize ||
      shape.shared > kMostShared)
    return answer(cudaErrorInvalidConfiguration);
  return enqueue(stream, std::move(work));
}

bool whole_blocks() {
  static const bool whole = [] {
    const char* value = std::getenv("GRADUS_CUDA_ON_HOST_BLOCKS");
    return value && *value == '1';
  }();
  return whole;
}

void fail_next(const char* function, int error, int count) {
  std::lock_guard lock(machine().mutex);
  machine().injected[function] = {count, error};
}

}  // namespace gradus::cuda_on_host

extern "C" {

void gradus_cuda_on_host_forget_errors() {
  Machine& m = machine();
  std::unique_lock lock(m.mutex);
  for (int d = 0; d < m.device_count(); ++d) {
    m.errors[static_cast<size_t>(d)] = cudaErrorUnknown;  // what is queued is passed over
    m.wait_for_device(lock, d);
    m.errors[static_cast<size_t>(d)] = cudaSuccess;
    lock.unlock();
    *gradus::cuda::fault_record(d) = {};
    lock.lock();
  }
}

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInsufficientDriver:
      return "cudaErrorInsufficientDriver";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorLaunchFailure:
      return "cudaErrorLaunchFailure";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorStreamCaptureImplicit:
      return "cudaErrorStreamCaptureImplicit";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated:
      return "cudaErrorStreamCaptureInvalidated";
    default:
      return "another cudaError_t";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInsufficientDriver:
      return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorLaunchFailure:
      return "unspecified launch failure";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture";
    default:
      return "an error";
  }
}

cudaError_t cudaGetDeviceCount(int* count) {
  Machine& m = machine();
  std::unique_lock lock(m.mutex);
  *count = m.device_count();
  return answer(static_cast<cudaError_t>(m.count_error));
}

cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  Machine& m = machine();
  std::unique_lock lock(m.mutex);
  if (const cudaError_t error = trouble(m, "cudaSetDevice", device); error == cudaErrorInvalidDevice)
    return answer(error);
  current_device = device;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device) {
  Machine& m = machine();
  std::unique_lock lock(m.mutex);
  if (device < 0 || device >= m.device_count()) return answer(cudaErrorInvalidDevice);
  std::memset(p, 0, sizeof *p);
  std::strcpy(p->name, "CUDA on the host (for tests)");
  p->totalGlobalMem = Machine::kCapacity;
  p->multiProcessorCount = 4;
  p->major = 9, p->minor = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* possible, int device, int peer) {
  *possible = device != peer;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }

cudaError_t cudaDeviceGetPCIBusId(char*, int, int) { return answer(cudaErrorNotSupported); }

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  BEGIN("cudaMemGetInfo");
  *total = Machine::kCapacity;
  *free = *total - m.used[static_cast<size_t>(current_device)];
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** data, size_t bytes) {
  BEGIN("cudaMalloc");
  size_t& used = m.used[static_cast<size_t>(current_device)];
  if (bytes > Machine::kCapacity - used) return answer(cudaErrorMemoryAllocation);
  if (::posix_memalign(data, 512, bytes) != 0) return answer(cudaErrorMemoryAllocation);
  std::memset(*data, 0xcb, std::min<size_t>(bytes, 1 << 20));  // as found, not zero
  m.memory[reinterpret_cast<uintptr_t>(*data)] = {bytes, current_device};
  used += bytes;
  return cudaSuccess;
}

cudaError_t cudaFree(void* data) {
  if (!data) return cudaSuccess;
  Machine& m = machine();
  std::unique_lock lock(m.mutex);
  const auto piece = m.memory.find(reinterpret_cast<uintptr_t>(data));
  if (piece == m.memory.end() || piece->second.second < 0) return answer(cudaErrorInvalidValue);
  const auto [bytes, device] = piece->second;
  m.wait_for_device(lock, device);
  m.used[static_cast<size_t>(device)] -= bytes;
  m.memory.erase(reinterpret_cast<uintptr_t>(data));
  std::free(data);
  return answer(static_cast<cudaError_t>(m.errors[static_cast<size_t>(device)]));
}

cudaError_t cudaHostAlloc(void** data, size_t bytes, unsigned) {
  BEGIN("cudaHostAlloc");
  *data = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (!*data) return answer(cudaErrorMemoryAllocation);
  m.memory[reinterpret_cast<uintptr_t>(*data)] = {bytes, -1};
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* data) {
  Machine& m = machine();
  std::unique_lock lock(m.mutex);
  for (int d = 0; d < m.device_count(); ++d) m.wait_for_device(lock, d);
  m.memory.erase(reinterpret_cast<uintptr_t>(data));
  std::free(data);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t handle) {
  BEGIN_STREAM("cudaMemcpyAsync", handle);
  auto known = [&](const void* data) {
    for (int d = -1; d < m.device_count(); ++d)
      if (m.holds(d, data, bytes)) return true;
    return false;
  };
  const bool pageable = !known(to) || !known(from);
  if (pageable && stream->capture) {
    stream->capture->invalid = true;
    return answer(cudaErrorStreamCaptureUnsupported);
  }
  const cudaError_t added = add(m, *stream, [=] { std::memcpy(to, from, bytes); });
  if (added != cudaSuccess || !pageable) return answer(added);
  m.wait(lock, stream->last);
  return answer(static_cast<cudaError_t>(m.errors[static_cast<size_t>(stream->device)]));
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                                cudaStream_t handle) {
  BEGIN_STREAM("cudaMemcpyPeerAsync", handle);
  if (!m.holds(to_device, to, bytes) || !m.holds(from_device, from, bytes))
    return answer(cudaErrorInvalidValue);
  return answer(add(m, *stream, [=] { std::memcpy(to, from, bytes); }));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* handle, unsigned flags) {
  BEGIN("cudaStreamCreateWithFlags");
  auto& streams = m.streams[static_cast<size_t>(current_device)];
  streams.push_back(std::make_unique<Stream>(Stream{current_device, flags == cudaStreamDefault, false}));
  *handle = reinterpret_cast<cudaStream_t>(streams.back().get());
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  BEGIN_STREAM("cudaStreamQuery", handle);
  if (stream->capture) {
    stream->capture->invalid = true;
    return answer(cudaErrorStreamCaptureUnsupported);
  }
  return stream->last->passed ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  BEGIN_STREAM("cudaStreamSynchronize", handle);
  if (stream->capture) {
    stream->capture->invalid = true;
    return answer(cudaErrorStreamCaptureUnsupported);
  }
  m.wait(lock, DonePtr(stream->last));
  return answer(static_cast<cudaError_t>(m.errors[static_cast<size_t>(stream->device)]));
}

cudaError_t cudaDeviceSynchronize() {
  BEGIN("cudaDeviceSynchronize");
  m.wait_for_device(lock, current_device);
  return answer(static_cast<cudaError_t>(m.errors[static_cast<size_t>(current_device)]));
}

cudaError_t cudaEventCreate(cudaEvent_t* handle) {
  BEGIN("cudaEventCreate");
  *handle = reinterpret_cast<cudaEvent_t>(new Event{current_device});
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  std::lock_guard lock(machine().mutex);
  delete reinterpret_cast<Event*>(handle);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle) {
  BEGIN_STREAM("cudaEventRecord", stream_handle);
  auto& event = *reinterpret_cast<Event*>(handle);
  if (event.device != stream->device) return answer(cudaErrorInvalidResourceHandle);
  event.captured = stream->capture != nullptr;
  event.capture = stream->capture;
  if (stream->capture) {
    event.seen = stream->capture->members[stream];
    return cudaSuccess;
  }
  event.done = m.submit(*stream, [] {});
  return cudaSuccess;
}

// A stream that waits for an event of a capture joins it.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream_handle, cudaEvent_t handle, unsigned) {
  BEGIN_STREAM("cudaStreamWaitEvent", stream_handle);
  auto& event = *reinterpret_cast<Event*>(handle);
  if (event.captured) {
    const std::shared_ptr<Capture> capture = event.capture.lock();
    if (!capture) return answer(cudaErrorCapturedEvent);
    if (stream->is_default) return capture->invalid = true, answer(cudaErrorStreamCaptureImplicit);
    if (stream->capture && stream->capture != capture) {
      stream->capture->invalid = capture->invalid = true;
      return answer(cudaErrorStreamCaptureMerge);
    }
    stream->capture = capture;
    for (const auto& [other, count] : event.seen) {
      int& mine = capture->members[stream][other];
      mine = std::max(mine, count);
    }
    return cudaSuccess;
  }
  if (!event.done) return cudaSuccess;
  if (stream->capture) return stream->capture->invalid = true, answer(cudaErrorStreamCaptureIsolation);
  stream->next_after.push_back(event.done);
  m.submit(*stream, [] {});  // so that a query of the stream sees the wait
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  Machine& m = machine();
  std::unique_lock lock(m.mutex);
  const auto& event = *reinterpret_cast<Event*>(handle);
  if (const cudaError_t error = trouble(m, "cudaEventQuery", event.device); error != cudaSuccess)
    return answer(error);
  if (event.captured) return answer(cudaErrorCapturedEvent);
  return !event.done || event.done->passed ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  Machine& m = machine();
  std::unique_lock lock(m.mutex);
  const Event event = *reinterpret_cast<Event*>(handle);
  if (const cudaError_t error = trouble(m, "cudaEventSynchronize", event.device); error != cudaSuccess)
    return answer(error);
  if (event.captured) return answer(cudaErrorCapturedEvent);
  if (event.done) m.wait(lock, event.done);
  return answer(static_cast<cudaError_t>(m.errors[static_cast<size_t>(event.device)]));
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  std::lock_guard lock(machine().mutex);
  const auto &a = *reinterpret_cast<Event*>(start), &b = *reinterpret_cast<Event*>(end);
  if (a.captured || b.captured || !a.done || !b.done) return answer(cudaErrorInvalidResourceHandle);
  if (!a.done->passed || !b.done->passed) return cudaErrorNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(b.done->time - a.done->time).count();
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode) {
  BEGIN_STREAM("cudaStreamBeginCapture", handle);
  if (stream->is_default) return answer(cudaErrorStreamCaptureUnsupported);
  if (stream->capture) return answer(cudaErrorIllegalState);
  stream->capture = std::make_shared<Capture>(Capture{stream, {}, {{stream, {}}}, false});
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  Machine& m = machine();
  std::unique_lock lock(m.mutex);
  Stream* stream = m.find(handle);
  *graph = nullptr;
  if (!stream || !stream->capture) return answer(cudaErrorIllegalState);
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture->origin != stream) return answer(cudaErrorStreamCaptureUnmatched);
  for (const auto& [member, seen] : capture->members) member->capture = nullptr;
  if (capture->invalid) return answer(cudaErrorStreamCaptureInvalidated);
  const auto& end = capture->members[stream];
  for (const auto& [member, seen] : capture->members) {
    const auto own = seen.find(member), joined = end.find(member);
    if (own != seen.end() && (joined == end.end() || joined->second < own->second))
      return answer(cudaErrorStreamCaptureUnjoined);
  }
  *graph = reinterpret_cast<cudaGraph_t>(new Graph{std::move(capture->work)});
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  *exec = reinterpret_cast<cudaGraphExec_t>(new Graph(*reinterpret_cast<Graph*>(graph)));
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete reinterpret_cast<Graph*>(graph);
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete reinterpret_cast<Graph*>(exec);
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t handle) {
  BEGIN_STREAM("cudaGraphLaunch", handle);
  auto work = reinterpret_cast<Graph*>(exec)->work;
  return answer(add(m, *stream, [work] {
    for (const auto& item : work) item();
  }));
}

}  // extern "C"
