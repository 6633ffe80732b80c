// A CUDA runtime for machines without a GPU, for tests: the functions of cuda_runtime_api.h that the backend
// calls, on host memory and threads. Work is asynchronous, in order in a stream, and follows the documented
// rules of events, the legacy default stream, captures and sticky errors, so that the backend's own code, and
// the launch of every operation, runs under ctest. No speed is measured on it, and it is not part of the library.
#pragma once
#include <functional>

#include "kernels/blocks/launch.cuh"

namespace gradus::cuda_on_host {

/// Queues `work` on a stream and returns a cudaError_t; refuses shapes that no GPU takes.
int launch(void* stream, const kernels::LaunchShape& shape, std::function<void()> work);

/// GRADUS_CUDA_ON_HOST_BLOCKS=1: every block gets all its threads, also where one could do the work.
bool whole_blocks();

}  // namespace gradus::cuda_on_host
