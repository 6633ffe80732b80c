// Streams, events, and the host's waiting.
#include <gradus/backends/cuda/cuda_backend.h>

namespace gradus::cuda {

StreamState& CudaBackend::enter(const Stream& stream) {
  DeviceState& device = devices_[static_cast<size_t>(stream.device.index())];
  make_current(stream.device.index());
  std::shared_lock lock(device.mutex);
  if (stream.id < 0 || stream.id >= static_cast<int64_t>(device.streams.size()))
    runtime::refuse_stream(stream);
  return *device.streams[static_cast<size_t>(stream.id)];
}

int64_t CudaBackend::create_stream(int index, bool blocking) {
  make_current(index);
  cudaStream_t handle = nullptr;
  GRADUS_CUDA(Device(DeviceType::cuda, index),
              cudaStreamCreateWithFlags(&handle, blocking ? cudaStreamDefault : cudaStreamNonBlocking));
  DeviceState& device = devices_[static_cast<size_t>(index)];
  std::unique_lock lock(device.mutex);
  const auto id = static_cast<int64_t>(device.streams.size());
  device.streams.push_back(std::make_unique<StreamState>(StreamState{handle, id, nullptr}));
  return id;
}

bool CudaBackend::query(const Stream& stream) {
  StreamState& state = enter(stream);
  {
    std::lock_guard lock(capture_mutex_);
    refuse_during_capture(state.capture.get(), "a query of the stream");
  }
  const cudaError_t answer = cudaStreamQuery(state.handle);
  if (answer != cudaErrorNotReady) check(answer, "cudaStreamQuery", stream.device);
  return answer == cudaSuccess;
}

void CudaBackend::synchronize(const Stream& stream) {
  StreamState& state = enter(stream);
  {
    std::lock_guard lock(capture_mutex_);
    refuse_during_capture(state.capture.get(), "a synchronisation of the host");
  }
  GRADUS_CUDA(stream.device, cudaStreamSynchronize(state.handle));
}

void CudaBackend::synchronize_device(int index) {
  {
    DeviceState& device = devices_[static_cast<size_t>(index)];
    std::shared_lock lock(device.mutex);
    std::lock_guard capture_lock(capture_mutex_);
    for (const auto& stream : device.streams)
      refuse_during_capture(stream->capture.get(), "a synchronisation of the device");
  }
  make_current(index);
  GRADUS_CUDA(Device(DeviceType::cuda, index), cudaDeviceSynchronize());
}

void* CudaBackend::create_event(int index) {
  make_current(index);
  auto event = std::make_unique<EventState>(EventState{nullptr, {DeviceType::cuda, index}, false, false, {}});
  GRADUS_CUDA(event->device, cudaEventCreate(&event->handle));
  return event.release();
}

void CudaBackend::destroy_event(int, void* event) noexcept {
  auto* e = static_cast<EventState*>(event);
  cudaEventDestroy(e->handle);
  cudaGetLastError();
  delete e;
}

void CudaBackend::record(void* event, const Stream& stream) {
  StreamState& state = enter(stream);
  auto& e = *static_cast<EventState*>(event);
  GRADUS_CUDA(stream.device, cudaEventRecord(e.handle, state.handle));
  std::lock_guard lock(capture_mutex_);
  e.recorded = true;
  e.in_graph = state.capture != nullptr;
  e.capture = state.capture;
}

void CudaBackend::wait(void* event, const Stream& stream) {
  StreamState& state = enter(stream);
  const auto& e = *static_cast<EventState*>(event);
  {
    std::lock_guard lock(capture_mutex_);
    if (e.in_graph) {
      join_capture(state, e);
    } else if (e.recorded) {
      refuse_during_capture(state.capture.get(), "a wait for an event recorded outside");
    }
  }
  GRADUS_CUDA(stream.device, cudaStreamWaitEvent(state.handle, e.handle, 0));
}

bool CudaBackend::query_event(void* event) {
  const auto& e = *static_cast<EventState*>(event);
  {
    std::lock_guard lock(capture_mutex_);
    refuse_captured(e, "a query of an event");
  }
  const cudaError_t answer = cudaEventQuery(e.handle);
  if (answer != cudaErrorNotReady) check(answer, "cudaEventQuery", e.device);
  return answer == cudaSuccess;
}

void CudaBackend::synchronize_event(void* event) {
  const auto& e = *static_cast<EventState*>(event);
  {
    std::lock_guard lock(capture_mutex_);
    refuse_captured(e, "a synchronisation of the host");
  }
  GRADUS_CUDA(e.device, cudaEventSynchronize(e.handle));
}

double CudaBackend::elapsed_ms(void* start, void* end) {
  const auto &a = *static_cast<EventState*>(start), &b = *static_cast<EventState*>(end);
  for (const EventState* e : {&a, &b})
    runtime::check_has_time(e == &a ? "the start" : "the end", e->in_graph, e->recorded,
                            e->recorded && !e->in_graph && query_event(const_cast<EventState*>(e)));
  float milliseconds = 0;
  GRADUS_CUDA(a.device, cudaEventElapsedTime(&milliseconds, a.handle, b.handle));
  return static_cast<double>(milliseconds);
}

}  // namespace gradus::cuda
