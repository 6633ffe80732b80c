// Stands in for kernels/blocks/launch_cuda.cuh where the CUDA backend is compiled for the CPU: a launch is a
// piece of work of the emulated stream, which runs the body's blocks one after another.
#pragma once
#include <cuda_on_host/runtime.h>
#include <kernels/blocks/thread_block.h>

#include <kernels/blocks/launch.cuh>

namespace gradus::kernels {

template <Kernel Body>
int launch_cuda(const Body& body, int block_size, void* stream) {
  const LaunchShape shape = launch_shape(body, block_size);
  if (shape.grid == 0) return 0;
  return cuda_on_host::launch(stream, shape, [body, block_size] {
    // A block of one thread is the fastest; a body that needs more gets a thread for each.
    if constexpr (Body::supports(1)) {
      if (!cuda_on_host::whole_blocks()) return run_serial(body);
    }
    run_threads(body, block_size);
  });
}

}  // namespace gradus::kernels
