// Joining tensors (kernels/cat.cuh) on a GPU.
#include <gradus/backends/cuda/kernel.cuh>

#include "kernels/cat_block.cuh"

namespace gradus::kernels {

void cat_cuda(const CatArgs& args, const Stream& stream) {
  run_cat(
      args, [&](const auto& body) { cuda::run(body, stream); },
      [&](const CopyArgs& copy) { copy_cuda(copy, stream); });
}

}  // namespace gradus::kernels
