// Running a kernel body: serially here, with a thread per CUDA thread in thread_block.h, or on a GPU.
#pragma once
#include <cstring>
#include <kernels/blocks/block.cuh>
#include <vector>

namespace gradus::kernels {

/// Throws E-BLOCK-SIZE naming the kernel, the size and the nearest sizes it supports.
template <Kernel Body>
void check_block_size(int block_size) {
  if (Body::supports(block_size)) return;
  int below = block_size < kMaxBlockSize ? block_size : kMaxBlockSize,
      above = block_size > 1 ? block_size : 1;
  while (below > 0 && !Body::supports(below)) --below;
  while (above <= kMaxBlockSize && !Body::supports(above)) ++above;
  std::string nearest = below > 0 ? str(below) : "";
  if (above <= kMaxBlockSize) nearest += (nearest.empty() ? "" : " or ") + str(above);
  GRADUS_FAIL("E-BLOCK-SIZE", Body::kName, ": cannot run with a block of ", block_size, " threads",
              hint("use a block of ", nearest));
}

namespace detail {
// Shared memory as a kernel finds it: not zero. All bits set is NaN to a float and -1 to an integer.
inline std::vector<std::byte> fresh_shared_memory(size_t bytes) {
  return std::vector<std::byte>(bytes + sizeof(std::max_align_t), std::byte{0xff});
}
}  // namespace detail

/// Runs every block, one after another, on the calling thread. The body must support a block of one thread.
template <Kernel Body>
void run_serial(const Body& body) {
  check_block_size<Body>(1);
  auto shared = detail::fresh_shared_memory(body.shared_bytes(1));
  for (int64_t group = 0, groups = body.groups(1); group < groups; ++group) {
    SerialBlock block(group, shared.data());
    body(block);
  }
}

/// What a launch asks of CUDA.
struct LaunchShape {
  unsigned grid;  ///< blocks; 0: there is nothing to do
  int block;      ///< threads of each
  size_t shared;  ///< bytes of dynamic shared memory of each
};

/// CUDA's limit for the first dimension of a grid. A body with more groups has each block do several.
inline constexpr int64_t kMaxGrid = 0x7fffffff;

/// The shape of a launch of `body`; throws E-BLOCK-SIZE.
template <Kernel Body>
LaunchShape launch_shape(const Body& body, int block_size) {
  check_block_size<Body>(block_size);
  const int64_t groups = body.groups(block_size);
  return {static_cast<unsigned>(groups < kMaxGrid ? groups : kMaxGrid), block_size,
          body.shared_bytes(block_size)};
}

/// Launches on a CUDA stream (a cudaStream_t) and returns the cudaError_t. Defined by launch_cuda.cuh, which
/// only what is compiled as CUDA includes.
template <Kernel Body>
int launch_cuda(const Body& body, int block_size, void* stream);

#ifdef __CUDACC__
/// Compiles the body for CUDA.
#define GRADUS_KERNEL(...) \
  template int gradus::kernels::launch_cuda<__VA_ARGS__>(const __VA_ARGS__&, int, void*)
#else
#define GRADUS_KERNEL(...) static_assert(gradus::kernels::Kernel<__VA_ARGS__>)
#endif

}  // namespace gradus::kernels

#ifdef __CUDACC__
#include <kernels/blocks/launch_cuda.cuh>
#endif
