#include <gradus/backends/cuda/backend.h>
#include <gradus/backends/cuda/cuda_backend.h>
#include <gradus/backends/cuda/stream.h>
#include <gradus/runtime/caching_allocator.h>
#include <gradus/runtime/diagnosis.h>
#include <gradus/runtime/shared_library.h>

#include <algorithm>
#include <cstdlib>

namespace gradus {
namespace cuda {
namespace {

// One variable for sim and cuda. CUDA reads its own as it starts, so this comes before the first call.
void pass_on_launch_blocking() {
  const char* value = std::getenv("GRADUS_LAUNCH_BLOCKING");
  if (value && *value) ::setenv("CUDA_LAUNCH_BLOCKING", value, 0);
}

// CUDA's runtime loads the driver's library in this process, and a damaged file would take the process with
// it.
bool driver_can_be_loaded() {
#ifdef GRADUS_CUDA_ON_HOST
  return true;
#else
  return runtime::SharedLibrary({"libcuda.so.1"}).found();
#endif
}

}  // namespace

CudaBackend::CudaBackend() {
  pass_on_launch_blocking();
  init_error_ = cudaErrorInsufficientDriver;
  if (!driver_can_be_loaded()) return;
  int count = 0;
  init_error_ = cudaGetDeviceCount(&count);
  cudaGetLastError();  // it is no error that a later call should report
  if (init_error_ == cudaSuccess) device_count_ = std::min(count, Device::kMaxIndices);
  for (int d = 0; d < device_count_; ++d)
    devices_[static_cast<size_t>(d)].streams.push_back(
        std::make_unique<StreamState>(StreamState{nullptr, 0, nullptr}));  // the legacy default stream
}

// The doctor knows more than CUDA's error code; where it finds nothing amiss, CUDA's words have to do.
std::string CudaBackend::unavailable_reason() const {
  if (device_count_ > 0) return "";
  for (const Finding& finding : diagnose(gather_cuda_facts()))
    if (finding.severity == Severity::blocking) return str(finding.cause, " (", finding.code, ")");
  return init_error_ == cudaSuccess ? "CUDA finds no device" : cudaGetErrorString(init_error_);
}

runtime::DeviceProperties CudaBackend::properties(int index) const {
  cudaDeviceProp p;
  GRADUS_CUDA(Device(DeviceType::cuda, index), cudaGetDeviceProperties(&p, index));
  return {.name = p.name,
          .total_memory = p.totalGlobalMem,
          .multiprocessors = p.multiProcessorCount,
          .capability_major = p.major,
          .capability_minor = p.minor};
}

runtime::MemoryInfo CudaBackend::memory_info(int index) const {
  make_current(index);
  runtime::MemoryInfo info;
  GRADUS_CUDA(Device(DeviceType::cuda, index), cudaMemGetInfo(&info.free, &info.total));
  return info;
}

// launch() calls a cuda kernel's function at once: it launches on the stream itself.
void CudaBackend::run(const Stream&, const runtime::KernelTask& task) { task.run(task.arguments); }

void make_current(int index) {
  int current = -1;
  if (cudaGetDevice(&current) == cudaSuccess && current == index) [[likely]]
    return;
  GRADUS_CUDA(Device(DeviceType::cuda, index), cudaSetDevice(index));
}

CudaBackend& backend() {
  static auto* made = new CudaBackend;  // never destroyed: tensors may outlive static objects
  return *made;
}

void* handle_of(const Stream& stream) { return backend().enter(stream).handle; }

Workspace::Workspace(size_t bytes, const Stream& stream) {
  const runtime::Allocation allocation = runtime::allocate_memory(bytes, stream);
  data_ = allocation.data, block_ = allocation.block;
}
Workspace::~Workspace() { runtime::free_memory({data_, static_cast<runtime::Block*>(block_)}); }

}  // namespace cuda

runtime::Backend& runtime::cuda_backend() { return cuda::backend(); }

}  // namespace gradus
