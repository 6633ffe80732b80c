#include <gradus/backends/cuda/cuda_backend.h>
#include <gradus/backends/cuda/errors.h>
#include <gradus/backends/cuda/stream.h>
#include <gradus/base/error.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <string_view>

namespace gradus::cuda {
namespace {

constexpr const char* kEarlier =
    ". The error comes from work that was queued earlier: the call that reports it may have no part in it";

bool launch_blocking() {
  const char* value = std::getenv("CUDA_LAUNCH_BLOCKING");
  return value && std::string_view(value) == "1";
}

// Work of the process on that device is over. What a kernel has reported is the cause, whatever CUDA calls
// it.
[[noreturn]] void fail_for_good(cudaError_t error, Device device) {
  const char* earlier = launch_blocking() ? "" : kEarlier;
  const std::string until = "the device cannot be used again until the process ends";
  const std::string remedy =
      launch_blocking() ? until : "set GRADUS_LAUNCH_BLOCKING=1 to see it at the launch at fault; " + until;
  const kernels::DeviceFault& fault = *fault_record(device.index());
  if (std::atomic_ref(const_cast<int&>(fault.written)).load())
    GRADUS_FAIL("E-DEVICE-ASSERT", fault.op, ": device-side assert triggered on ", device, ": ",
                fault.describe(fault.op, fault.values), earlier, hint(remedy));
  if (error == cudaErrorIllegalAddress)
    GRADUS_FAIL("E-ILLEGAL-ADDRESS", "cuda: an illegal memory access was encountered on ", device, earlier,
                hint("compute-sanitizer names the kernel and the address; ", remedy));
  if (error == cudaErrorAssert)
    GRADUS_FAIL("E-DEVICE-ASSERT", "cuda: device-side assert triggered on ", device, earlier, hint(remedy));
  GRADUS_FAIL("E-CUDA", "cuda: ", cudaGetErrorString(error), " (", cudaGetErrorName(error), ") on ", device,
              earlier, hint(remedy));
}

bool is_of_capture(cudaError_t error) {
  return error >= cudaErrorStreamCaptureUnsupported && error <= cudaErrorCapturedEvent;
}

}  // namespace

bool is_sticky(cudaError_t error) {
  switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
      return true;
    default:
      return false;
  }
}

void check(cudaError_t error, const char* call, Device device) {
  if (error == cudaSuccess) [[likely]]
    return;
  cudaGetLastError();  // or the next launch would report it again; one that sticks does stay
  if (is_sticky(error)) fail_for_good(error, device);
  if (is_of_capture(error))
    GRADUS_FAIL("E-CAPTURE", "capture: operation not permitted when stream is capturing: ", call, " on ",
                device, " (", cudaGetErrorName(error), ")",
                hint("do it before capture_begin() or after capture_end()"));
  if (error == cudaErrorMemoryAllocation)
    GRADUS_FAIL("E-OUT-OF-MEMORY", call, ": out of memory on ", device,
                hint("use a smaller batch, or free what is no longer needed"));
  if (error == cudaErrorNoKernelImageForDevice)
    GRADUS_FAIL("E-CUDA-ARCH", call, ": no kernel image is available for execution on ", device,
                hint("01_env_check says what this build has, and how to build for the device"));
  GRADUS_FAIL("E-CUDA", call, ": ", cudaGetErrorString(error), " (", cudaGetErrorName(error), ") on ",
              device);
}

// Pinned, so that a kernel can write there and the host can read it when the device no longer answers. Never
// freed: an error may be reported as late as the process ends.
kernels::DeviceFault* fault_record(int device) {
  static std::array<kernels::DeviceFault*, Device::kMaxIndices> records{};
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  kernels::DeviceFault*& record = records[static_cast<size_t>(device)];
  if (!record) {
    void* memory = nullptr;
    if (cudaHostAlloc(&memory, sizeof *record, cudaHostAllocPortable) != cudaSuccess)
      memory = ::operator new(sizeof *record);  // nothing will ever be written there
    record = new (memory) kernels::DeviceFault;
  }
  return record;
}

void check_launch(int error, const char* name, Device device) {
  if (error != cudaSuccess) [[unlikely]]
    check(static_cast<cudaError_t>(error), name, device);
}

kernels::FaultSite fault_site(Device device, const char* op,
                              std::string (*describe)(const char* op, const int64_t* values)) {
  make_current(device.index());  // or the record would bring the first GPU's context to life
  return {fault_record(device.index()), op, describe};
}

}  // namespace gradus::cuda
