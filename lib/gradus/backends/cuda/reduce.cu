// sum, mean, norm and prod.
#include <gradus/backends/cuda/reduce.cuh>

namespace gradus {
namespace cuda {

template <class F>
struct Launcher<WideReduceKernel<F>> {
  template <class T>
  static void run(const ReduceArgs& a, const Stream& stream) {
    fold<F, T, std::conditional_t<std::is_integral_v<T>, int64_t, T>>(a, stream);
  }
};
// The sum of numbers is their mean with a count of 1: one kernel for both.
template <>
struct Launcher<WideReduceKernel<reduction::Add>> {
  template <class T>
  static void run(const ReduceArgs& a, const Stream& stream) {
    if constexpr (std::is_integral_v<T>)
      return fold<reduction::Add, T, int64_t>(a, stream);
    else
      return fold<reduction::Mean, T, T>({a.x, a.y, 1}, stream);
  }
};

}  // namespace cuda

GRADUS_CUDA_KERNEL(ReduceArgs, kAllTypes, WideReduceKernel<reduction::Add>);
GRADUS_CUDA_KERNEL(ReduceArgs, kFloatingTypes, ReduceKernel<reduction::Mean>);
GRADUS_CUDA_KERNEL(ReduceArgs, kFloatingTypes, ReduceKernel<reduction::Euclidean>);
GRADUS_CUDA_KERNEL(ReduceArgs, kAllTypes, WideReduceKernel<reduction::Multiply>);

}  // namespace gradus
