// Streams, events and graphs of the emulated runtime.
#include <cuda_on_host/calls.h>

#include <algorithm>
#include <chrono>

using namespace gradus::cuda_on_host;

extern "C" {

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
  return answer(error_of(m, stream->device));
}

cudaError_t cudaDeviceSynchronize() {
  BEGIN("cudaDeviceSynchronize");
  m.wait_for_device(lock, current_device);
  return answer(error_of(m, current_device));
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
  return answer(error_of(m, event.device));
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
