// Memory of the devices, pinned memory, and copies.
#include <gradus/backends/cuda/cuda_backend.h>

#include <cstring>

namespace gradus::cuda {
namespace {

// Another device is CUDA's current one for a while. For calls that must not throw.
class Visit {
 public:
  explicit Visit(int device) {
    cudaGetDevice(&before_);
    cudaSetDevice(device);
  }
  ~Visit() {
    cudaSetDevice(before_);
    cudaGetLastError();  // what went wrong here, a later call that may throw reports
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

 private:
  int before_ = 0;
};

}  // namespace

void* CudaBackend::allocate(int index, size_t bytes) {
  make_current(index);
  void* data = nullptr;
  const cudaError_t error = cudaMalloc(&data, bytes);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // not sticky: the caller says what it means
    return nullptr;
  }
  check(error, "cudaMalloc", {DeviceType::cuda, index});
  devices_[static_cast<size_t>(index)].memory.add(data, bytes);
  return data;
}

void CudaBackend::free(int index, void* data) noexcept {
  devices_[static_cast<size_t>(index)].memory.remove(data);
  const Visit visit(index);
  cudaFree(data);
}

void* CudaBackend::allocate_pinned(size_t bytes) {
  void* data = nullptr;
  const cudaError_t error = cudaHostAlloc(&data, bytes, cudaHostAllocPortable);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return nullptr;
  }
  check(error, "cudaHostAlloc", {DeviceType::cuda, 0});
  pinned_.add(data, bytes);
  return data;
}

void CudaBackend::free_pinned(void* data) noexcept {
  pinned_.remove(data);
  cudaFreeHost(data);
  cudaGetLastError();
}

void CudaBackend::check_address(Device device, const void* data, size_t bytes, const char* which) const {
  if (!devices_[static_cast<size_t>(device.index())].memory.hold(data, bytes))
    runtime::refuse_address(which, bytes, device);
}

// Between GPUs that reach each other's memory; where that fails, copies are right and slower, by way of the
// host. Asked once for each pair.
void CudaBackend::enable_peer_access(int from, int to) {
  std::lock_guard lock(peers_mutex_);
  if (peers_[static_cast<size_t>(from)].test(static_cast<size_t>(to))) return;
  peers_[static_cast<size_t>(from)].set(static_cast<size_t>(to));
  const Visit visit(from);
  int possible = 0;
  if (cudaDeviceCanAccessPeer(&possible, from, to) == cudaSuccess && possible)
    cudaDeviceEnablePeerAccess(to, 0);
}

void CudaBackend::copy(void* to, Device to_device, const void* from, Device from_device, size_t bytes,
                       const Stream& stream) {
  StreamState& state = enter(stream);
  if (bytes == 0) return;
  runtime::check_reachable(DeviceType::cuda, to_device, from_device);
  if (to_device.is_cuda()) check_address(to_device, to, bytes, "target");
  if (from_device.is_cuda()) check_address(from_device, from, bytes, "source");
  const bool host_waits = (from_device.is_cpu() && to_device.is_cpu()) ||
                          (from_device.is_cpu() && !is_pinned(from, bytes)) ||
                          (to_device.is_cpu() && !is_pinned(to, bytes));
  if (host_waits) {
    std::lock_guard lock(capture_mutex_);
    refuse_during_capture(state.capture.get(), "a copy from or to pageable memory");
  }
  if (to_device.is_cuda() && from_device.is_cuda() && to_device != from_device) {
    enable_peer_access(to_device.index(), from_device.index());
    enable_peer_access(from_device.index(), to_device.index());
    GRADUS_CUDA(stream.device,
                cudaMemcpyPeerAsync(to, to_device.index(), from, from_device.index(), bytes, state.handle));
  } else {
    GRADUS_CUDA(stream.device, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, state.handle));
  }
  // CUDA itself comes back from a pageable source as soon as it has taken it over; when, depends on its size.
  if (host_waits) GRADUS_CUDA(stream.device, cudaStreamSynchronize(state.handle));
}

}  // namespace gradus::cuda
