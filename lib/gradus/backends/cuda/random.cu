// Random numbers (kernels/random.cuh) on a GPU.
#include <gradus/backends/cuda/kernel.cuh>

#include "kernels/random_block.cuh"

namespace gradus {
namespace cuda {

template <>
struct Launcher<kernels::UniformKernel> {
  template <class T>
  static void run(const RandomArgs& a, const Stream& stream) {
    using C = ComputeType<T>;
    kernels::run_indexed<T>(
        kernels::UniformNumbers<T>{a.stream, static_cast<C>(a.a), static_cast<C>(a.b - a.a)}, a.y, nullptr,
        [&](const auto& body) { cuda::run(body, stream); });
  }
};

template <>
struct Launcher<kernels::NormalKernel> {
  template <class T>
  static void run(const RandomArgs& a, const Stream& stream) {
    using C = ComputeType<T>;
    kernels::run_indexed<T>(kernels::NormalNumbers<T>{a.stream, static_cast<C>(a.a), static_cast<C>(a.b)},
                            a.y, nullptr, [&](const auto& body) { cuda::run(body, stream); });
  }
};

template <>
struct Launcher<kernels::RandomIntKernel> {
  template <class T>
  static void run(const RandomIntArgs& a, const Stream& stream) {
    kernels::run_indexed<T>(kernels::RandomInts{a.stream, a.low, a.range}, a.y, nullptr,
                            [&](const auto& body) { cuda::run(body, stream); });
  }
};

}  // namespace cuda

GRADUS_CUDA_KERNEL(RandomArgs, kFloatingTypes, kernels::UniformKernel);
GRADUS_CUDA_KERNEL(RandomArgs, kFloatingTypes, kernels::NormalKernel);
GRADUS_CUDA_KERNEL(RandomIntArgs, kNumericTypes, kernels::RandomIntKernel);

}  // namespace gradus
