// Max and average pooling (kernels/max_pool2d.cuh, kernels/avg_pool2d.cuh) on a GPU.
#include <gradus/backends/cuda/kernel.cuh>

#include "kernels/avg_pool2d_block.cuh"
#include "kernels/max_pool2d_block.cuh"

namespace gradus {
namespace cuda {
namespace {

auto on(const Stream& stream) {
  return [&stream](const auto& body) { run(body, stream); };
}

}  // namespace

template <>
struct Launcher<MaxPoolKernel> {
  template <class T>
  static void run(const MaxPoolArgs& a, const Stream& stream) {
    kernels::run_max_pool<T>(a, on(stream));
  }
};
template <>
struct Launcher<MaxPoolGradKernel> {
  template <class T>
  static void run(const MaxPoolGradArgs& a, const Stream& stream) {
    kernels::run_max_pool_grad<T>(a, on(stream));
  }
};
template <>
struct Launcher<MaxPoolPickKernel> {
  template <class T>
  static void run(const MaxPoolPickArgs& a, const Stream& stream) {
    kernels::run_max_pool_pick<T>(a, on(stream));
  }
};
template <>
struct Launcher<AvgPoolKernel> {
  template <class T>
  static void run(const AvgPoolArgs& a, const Stream& stream) {
    kernels::run_avg_pool<T>(a, on(stream));
  }
};
template <>
struct Launcher<AvgPoolGradKernel> {
  template <class T>
  static void run(const AvgPoolGradArgs& a, const Stream& stream) {
    kernels::run_avg_pool_grad<T>(a, on(stream));
  }
};

}  // namespace cuda

void max_pool_indices_cuda(const MaxPoolIndexArgs& a, const Stream& stream) {
  kernels::run_max_pool_indices(a, cuda::on(stream));
}

GRADUS_CUDA_KERNEL(MaxPoolArgs, kFloatingTypes, MaxPoolKernel);
GRADUS_CUDA_KERNEL(MaxPoolGradArgs, kFloatingTypes, MaxPoolGradKernel);
GRADUS_CUDA_KERNEL(MaxPoolPickArgs, kFloatingTypes, MaxPoolPickKernel);
GRADUS_CUDA_KERNEL(AvgPoolArgs, kFloatingTypes, AvgPoolKernel);
GRADUS_CUDA_KERNEL(AvgPoolGradArgs, kFloatingTypes, AvgPoolGradKernel);

}  // namespace gradus
