// Memory and copies of the emulated runtime.
#include <cuda_on_host/calls.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

using namespace gradus::cuda_on_host;

extern "C" {

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
  return answer(error_of(m, device));
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
  return answer(error_of(m, stream->device));
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                                cudaStream_t handle) {
  BEGIN_STREAM("cudaMemcpyPeerAsync", handle);
  if (!m.holds(to_device, to, bytes) || !m.holds(from_device, from, bytes))
    return answer(cudaErrorInvalidValue);
  return answer(add(m, *stream, [=] { std::memcpy(to, from, bytes); }));
}

}  // extern "C"
