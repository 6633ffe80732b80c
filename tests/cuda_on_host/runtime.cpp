// The functions of CUDA's runtime that the backend calls. What each returns, and when, is the
// documentation's: CUDA runtime API ("may also return error codes from previous, asynchronous launches") and
// the programming guide's chapters on streams, events and graphs.
#include <cuda_on_host/calls.h>
#include <cuda_on_host/runtime.h>
#include <gradus/backends/cuda/errors.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace gradus::cuda_on_host {
namespace {

bool launch_blocking() {
  const char* value = std::getenv("CUDA_LAUNCH_BLOCKING");
  return value && *value == '1';
}

}  // namespace

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

int enqueue(void* handle, std::function<void()> work) {
  BEGIN_STREAM("launch", handle);
  const cudaError_t added = add(m, *stream, std::move(work));
  if (added != cudaSuccess || stream->capture || !launch_blocking()) return answer(added);
  m.wait(lock, stream->last);
  return answer(error_of(m, stream->device));
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

std::vector<std::pair<int, int>> peer_accesses() {
  std::lock_guard lock(machine().mutex);
  return machine().peer_accesses;
}

}  // namespace gradus::cuda_on_host

using namespace gradus::cuda_on_host;

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
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  BEGIN("cudaDeviceEnablePeerAccess");
  m.peer_accesses.emplace_back(current_device, peer);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* address, int length, int device) {
  std::snprintf(address, static_cast<size_t>(length), "0000:%02x:00.0", device + 1);
  return cudaSuccess;
}

}  // extern "C"
