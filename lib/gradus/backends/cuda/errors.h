// CUDA's error codes as our errors. Internal to cuda/.
#pragma once
#include <cuda_runtime_api.h>
#include <gradus/runtime/device.h>

#include "kernels/blocks/device_fault.cuh"

namespace gradus::cuda {

/// Throws for any error: E-DEVICE-ASSERT with what a kernel reported, E-ILLEGAL-ADDRESS, E-CAPTURE,
/// E-OUT-OF-MEMORY, E-CUDA-ARCH, or E-CUDA with the call, CUDA's name for it and its words. An error that
/// comes from work queued earlier and stays until the process ends says so, and names no call.
void check(cudaError_t error, const char* call, Device device);

/// True for errors after which no call on the device succeeds until the process ends.
bool is_sticky(cudaError_t error);

/// The record of a device, in pinned memory, where its kernels report faults.
kernels::DeviceFault* fault_record(int device);

#define GRADUS_CUDA(device, call) ::gradus::cuda::check(call, #call, device)

}  // namespace gradus::cuda
