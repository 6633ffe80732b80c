// amax and amin, and max and min with indices.
#include <gradus/backends/cuda/reduce.cuh>
#include <kernels/extremum.cuh>

namespace gradus {
namespace cuda {

template <class F>
struct Launcher<FindKernel<F>> {
  template <class T>
  static void run(const FindArgs& a, const Stream& stream) {
    using Op = std::conditional_t<std::is_same_v<F, reduction::Max>, kernels::ArgMax, kernels::ArgMin>;
    T* values = a.values.present() ? a.values.data<T>() : nullptr;
    reduce<T, false>(a.x, a.indices, kernels::FindInto<Op, T>{values, a.indices.data<int64_t>()}, stream);
  }
};

}  // namespace cuda

GRADUS_CUDA_KERNEL(ReduceArgs, kAllTypes, ReduceKernel<reduction::Max>);
GRADUS_CUDA_KERNEL(ReduceArgs, kAllTypes, ReduceKernel<reduction::Min>);
GRADUS_CUDA_KERNEL(FindArgs, kAllTypes, FindKernel<reduction::Max>);
GRADUS_CUDA_KERNEL(FindArgs, kAllTypes, FindKernel<reduction::Min>);

}  // namespace gradus
