// A CUDA runtime for machines without a GPU, for tests: the functions of cuda_runtime_api.h that the backend
// calls, on host memory and threads. Work is asynchronous, in order in a stream, and follows the documented
// rules of events, the legacy default stream, captures and sticky errors, so that the backend's own code, and
// the launch of every operation, runs under ctest. No speed is measured on it, and it is not part of the
// library.
#pragma once
#include <functional>
#include <utility>
#include <vector>

#include "kernels/blocks/launch.cuh"

namespace gradus::cuda_on_host {

/// Queues `work` on a stream (a cudaStream_t) and returns a cudaError_t. Work that throws makes the device
/// unusable, as a trap does.
int enqueue(void* stream, std::function<void()> work);
/// enqueue(), for a kernel: refuses shapes that no GPU takes.
int launch(void* stream, const kernels::LaunchShape& shape, std::function<void()> work);

/// GRADUS_CUDA_ON_HOST_BLOCKS=1: every block gets all its threads, also where one could do the work.
bool whole_blocks();

// Devices: GRADUS_CUDA_ON_HOST_DEVICES, else none, so that only tests that want them see any. What
// cudaGetDeviceCount() answers instead: GRADUS_CUDA_ON_HOST_ERROR=35, for example, is a driver that is too
// old.

/// The next `count` calls of the function of that name fail with `error`, as in an injected fault.
void fail_next(const char* function, int error, int count = 1);

/// The calls of cudaDeviceEnablePeerAccess() so far: the current device then, and its peer.
std::vector<std::pair<int, int>> peer_accesses();

}  // namespace gradus::cuda_on_host

/// Makes all devices usable again, as if the process were new. Tests that run on a real GPU too find it, or
/// not, as a weak symbol.
extern "C" void gradus_cuda_on_host_forget_errors();
