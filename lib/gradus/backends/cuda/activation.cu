#include <gradus/backends/cuda/elementwise.cuh>

#include "kernels/activation.cuh"

namespace gradus {

using namespace kernels;

GRADUS_CUDA_KERNEL(UnaryArgs, kNumericTypes, UnaryKernel<Relu>);
GRADUS_CUDA_KERNEL(UnaryArgs, kFloatingTypes, UnaryKernel<LeakyRelu>);
GRADUS_CUDA_KERNEL(UnaryArgs, kFloatingTypes, UnaryKernel<Sigmoid>);
GRADUS_CUDA_KERNEL(UnaryArgs, kFloatingTypes, UnaryKernel<Tanh>);
GRADUS_CUDA_KERNEL(UnaryArgs, kFloatingTypes, UnaryKernel<Silu>);
GRADUS_CUDA_KERNEL(UnaryArgs, kFloatingTypes, UnaryKernel<Gelu>);
GRADUS_CUDA_KERNEL(UnaryArgs, kFloatingTypes, UnaryKernel<GeluTanh>);
GRADUS_CUDA_KERNEL(UnaryArgs, kFloatingTypes, UnaryKernel<Softplus>);
GRADUS_CUDA_KERNEL(BinaryArgs, kFloatingTypes, BinaryKernel<ReluGrad>);
GRADUS_CUDA_KERNEL(BinaryArgs, kFloatingTypes, BinaryKernel<LeakyReluGrad>);
GRADUS_CUDA_KERNEL(BinaryArgs, kFloatingTypes, BinaryKernel<SigmoidGrad>);
GRADUS_CUDA_KERNEL(BinaryArgs, kFloatingTypes, BinaryKernel<TanhGrad>);
GRADUS_CUDA_KERNEL(BinaryArgs, kFloatingTypes, BinaryKernel<SiluGrad>);
GRADUS_CUDA_KERNEL(BinaryArgs, kFloatingTypes, BinaryKernel<GeluGrad>);
GRADUS_CUDA_KERNEL(BinaryArgs, kFloatingTypes, BinaryKernel<GeluTanhGrad>);

}  // namespace gradus
