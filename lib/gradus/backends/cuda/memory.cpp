// Memory of the devices, pinned memory, and copies.
#include <gradus/backends/cuda/cuda_backend.h>

#include <cstring>

namespace gradus::cuda {

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

// An error here is one that the next call that may throw reports too.
void CudaBackend::free(int index, void* data) noexcept {
  devices_[static_cast<size_t>(index)].memory.remove(data);
  int before = -1;
  cudaGetDevice(&before);
  cudaSetDevice(index);
  cudaFree(data);
  if (before >= 0) cudaSetDevice(before);
  cudaGetLastError();
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
  GRADUS_CHECK(devices_[static_cast<size_t>(device.index())].memory.hold(data, bytes), "E-ILLEGAL-ADDRESS",
               "copy: invalid argument: the ", which, " (", bytes, " bytes) is not in memory of ", device);
}

// Between GPUs that reach each other's memory; others copy by way of the host. Asked once for each pair.
void CudaBackend::enable_peer_access(int from, int to) {
  std::lock_guard lock(peers_mutex_);
  if (peers_[static_cast<size_t>(from)].test(static_cast<size_t>(to))) return;
  peers_[static_cast<size_t>(from)].set(static_cast<size_t>(to));
  int possible = 0;
  if (cudaDeviceCanAccessPeer(&possible, from, to) == cudaSuccess && possible) {
    int before = -1;
    cudaGetDevice(&before);
    cudaSetDevice(from);
    cudaDeviceEnablePeerAccess(to, 0);
    cudaSetDevice(before);
  }
  cudaGetLastError();  // without it the copy is right, and slower
}

void CudaBackend::copy(void* to, Device to_device, const void* from, Device from_device, size_t bytes,
                       const Stream& stream) {
  StreamState& state = enter(stream);
  if (bytes == 0) return;
  for (const Device d : {to_device, from_device})
    GRADUS_CHECK(d.is_cpu() || d.is_cuda(), "E-DEVICE-MISMATCH", "copy: from ", from_device, " to ",
                 to_device, ": a cuda device cannot reach another kind of device",
                 hint("go by way of the cpu"));
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
