// Running a kernel body on a GPU: nvcc's part of launch.cuh.
#pragma once
#include <kernels/blocks/launch.cuh>

namespace gradus::kernels {

// Each block does the groups blockIdx.x, blockIdx.x + gridDim.x, …: one, unless there are more than a grid
// may have blocks.
template <class Body>
__global__ void entry(const Body body, int64_t groups) {
  for (int64_t group = blockIdx.x; group < groups; group += gridDim.x) {
    CudaBlock block(group);
    body(block);
    if (group + gridDim.x < groups) __syncthreads();  // all are done with the shared memory
  }
}

/// A body that runs with blocks of kBlockSize threads only and asks for the registers to be shared out such
/// that kBlocksPerSm of them fit on a multiprocessor.
template <class Body>
concept SizedForSm = requires {
  { Body::kBlockSize } -> std::convertible_to<int>;
  { Body::kBlocksPerSm } -> std::convertible_to<int>;
};
template <class Body>
__global__ void __launch_bounds__(Body::kBlockSize, Body::kBlocksPerSm)
    sized_entry(const Body body, int64_t /*groups*/) {
  CudaBlock block(blockIdx.x);
  body(block);
}

template <class Body>
constexpr auto entry_of() {
  if constexpr (SizedForSm<Body>)
    return &sized_entry<Body>;
  else
    return &entry<Body>;
}

template <Kernel Body>
int launch_cuda(const Body& body, int block_size, void* stream) {
  const LaunchShape shape = launch_shape(body, block_size);
  if (shape.grid == 0) return cudaSuccess;  // CUDA refuses an empty grid
  const int64_t groups = body.groups(block_size);
  if (SizedForSm<Body> && groups > kMaxGrid) return cudaErrorInvalidConfiguration;
  constexpr auto kernel = entry_of<Body>();
  if (shape.shared > 48 * 1024) {  // more than that a kernel has to ask for
    const cudaError_t refused = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                     static_cast<int>(shape.shared));
    if (refused != cudaSuccess) return refused;
  }
  kernel<<<shape.grid, shape.block, shape.shared, static_cast<cudaStream_t>(stream)>>>(body, groups);
  return cudaGetLastError();
}

}  // namespace gradus::kernels
