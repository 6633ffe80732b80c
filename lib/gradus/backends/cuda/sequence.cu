// arange and linspace (kernels/sequence.cuh) on a GPU.
#include <gradus/backends/cuda/kernel.cuh>

#include "kernels/sequence_block.cuh"

namespace gradus {
namespace cuda {

template <>
struct Launcher<kernels::Arange> {
  template <class T>
  static void run(const ArangeArgs& a, const Stream& stream) {
    using C = kernels::ArangeType<T>;
    using Numbers = kernels::ArangeNumbers<C>;
    kernels::run_indexed<T>(kernels::Sequence<C, Numbers>{Numbers(a)}, a.y, nullptr,
                            [&](const auto& body) { cuda::run(body, stream); });
  }
};

template <>
struct Launcher<kernels::Linspace> {
  template <class T>
  static void run(const LinspaceArgs& a, const Stream& stream) {
    using Numbers = kernels::LinspaceNumbers;
    kernels::run_indexed<T>(kernels::Sequence<double, Numbers>{Numbers(a)}, a.y, nullptr,
                            [&](const auto& body) { cuda::run(body, stream); });
  }
};

}  // namespace cuda

GRADUS_CUDA_KERNEL(ArangeArgs, kNumericTypes, kernels::Arange);
GRADUS_CUDA_KERNEL(LinspaceArgs, kFloatingTypes, kernels::Linspace);

}  // namespace gradus
