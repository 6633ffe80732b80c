// Dropout (kernels/dropout.cuh) on a GPU.
#include <gradus/backends/cuda/kernel.cuh>

#include "kernels/dropout_block.cuh"

namespace gradus {
namespace cuda {

template <>
struct Launcher<kernels::DropoutKernel> {
  template <class T>
  static void run(const DropoutArgs& a, const Stream& stream) {
    kernels::run_indexed<T>(kernels::Drop<T>(a), a.y, &a.x,
                            [&](const auto& body) { cuda::run(body, stream); });
  }
};

}  // namespace cuda

GRADUS_CUDA_KERNEL(DropoutArgs, kFloatingTypes, kernels::DropoutKernel);

}  // namespace gradus
