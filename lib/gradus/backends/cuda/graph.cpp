// Graphs by stream capture. CUDA does the recording; what it would refuse with a bare code is refused here
// first, with words, and spoils the graph as CUDA says it does.
#include <gradus/backends/cuda/cuda_backend.h>

namespace gradus::cuda {

void CudaBackend::refuse_during_capture(Capture* capture, const char* call) {
  if (!capture) return;
  capture->broken = str(call, " was made during it");
  runtime::refuse_in_capture(call);
}

// An event of a capture is nothing that the host could wait for, neither during the capture nor afterwards.
void CudaBackend::refuse_captured(const EventState& event, const char* call) {
  if (!event.in_graph) return;
  refuse_during_capture(event.capture.lock().get(), call);
  runtime::refuse_event_of_capture();
}

// A stream that waits for an event of a capture takes part in it from there on.
void CudaBackend::join_capture(StreamState& stream, const EventState& event) {
  const std::shared_ptr<Capture> capture = event.capture.lock();
  if (!capture) refuse_captured(event, "a wait");
  if (stream.id == 0) refuse_during_capture(capture.get(), "a wait on the default stream");
  if (stream.capture && stream.capture != capture) {
    capture->broken = "another capture waited for it";
    refuse_during_capture(stream.capture.get(), "a wait for an event of another capture");
  }
  if (stream.capture) return;
  stream.capture = capture;
  capture->members.push_back(&stream);
}

void CudaBackend::begin_capture(const Stream& stream) {
  StreamState& state = enter(stream);
  std::lock_guard lock(capture_mutex_);
  runtime::check_capture_begins(stream, state.capture != nullptr);
  // Relaxed: other threads, and this one's allocator, may go on calling cudaMalloc() and the like.
  GRADUS_CUDA(stream.device, cudaStreamBeginCapture(state.handle, cudaStreamCaptureModeRelaxed));
  state.capture = std::make_shared<Capture>(Capture{&state, {&state}, ""});
}

void* CudaBackend::end_capture(const Stream& stream) {
  StreamState& state = enter(stream);
  std::string broken;
  {
    std::lock_guard lock(capture_mutex_);
    runtime::check_capture_ends(stream, state.capture && state.capture->origin == &state);
    const std::shared_ptr<Capture> capture = state.capture;
    for (StreamState* member : capture->members) member->capture = nullptr;
    broken = capture->broken;
  }
  cudaGraph_t graph = nullptr;
  const cudaError_t error = cudaStreamEndCapture(state.handle, &graph);
  if (error == cudaSuccess && broken.empty()) {
    auto made = std::make_unique<GraphState>(GraphState{nullptr, stream.device});
    const cudaError_t refused = cudaGraphInstantiate(&made->handle, graph, 0);
    cudaGraphDestroy(graph);
    check(refused, "cudaGraphInstantiate", stream.device);
    return made.release();
  }
  if (graph) cudaGraphDestroy(graph);
  cudaGetLastError();
  GRADUS_CHECK(error != cudaErrorStreamCaptureUnjoined || !broken.empty(), "E-CAPTURE",
               "capture: a stream took part on ", stream.device, " but was not joined again",
               hint("before the end, record an event on it and let the capturing stream wait for it"));
  if (is_sticky(error)) check(error, "cudaStreamEndCapture", stream.device);
  GRADUS_FAIL(
      "E-CAPTURE", "capture: there is no graph, because ",
      broken.empty() ? str("CUDA could not record what was called: ", cudaGetErrorString(error)) : broken);
}

bool CudaBackend::is_capturing(const Stream& stream) {
  StreamState& state = enter(stream);
  std::lock_guard lock(capture_mutex_);
  return state.capture != nullptr;
}

void CudaBackend::replay(void* graph, const Stream& stream) {
  const auto& g = *static_cast<GraphState*>(graph);
  runtime::check_replay(g.device, stream);
  GRADUS_CUDA(stream.device, cudaGraphLaunch(g.handle, enter(stream).handle));
}

// CUDA frees what a replay still uses when that is done.
void CudaBackend::destroy_graph(void* graph) noexcept {
  auto* g = static_cast<GraphState*>(graph);
  cudaGraphExecDestroy(g->handle);
  cudaGetLastError();
  delete g;
}

}  // namespace gradus::cuda
