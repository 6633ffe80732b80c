// What the functions of the emulated runtime share: how each begins, answers, and queues work. For
// runtime.cpp, memory.cpp and streams.cpp.
#pragma once
#include <cuda_on_host/machine.h>
#include <cuda_runtime_api.h>

#include <utility>

namespace gradus::cuda_on_host {

inline thread_local cudaError_t last_error = cudaSuccess;

inline cudaError_t answer(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) last_error = error;
  return error;
}

/// The error that sticks to a device.
inline cudaError_t error_of(const Machine& m, int device) {
  return static_cast<cudaError_t>(m.errors[static_cast<size_t>(device)]);
}

/// Under the lock: a fault that a test has asked for, or the error that sticks to the device.
inline cudaError_t trouble(Machine& m, const char* function, int device = current_device) {
  if (m.count_error) return static_cast<cudaError_t>(m.count_error);
  if (auto at = m.injected.find(function); at != m.injected.end() && at->second.first > 0) {
    --at->second.first;
    return static_cast<cudaError_t>(at->second.second);
  }
  if (device < 0 || device >= m.device_count()) return cudaErrorInvalidDevice;
  return error_of(m, device);
}

/// Records work in a capture, or queues it.
cudaError_t add(Machine& m, Stream& stream, std::function<void()> work);

}  // namespace gradus::cuda_on_host

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
