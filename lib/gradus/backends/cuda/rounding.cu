#include <gradus/backends/cuda/elementwise.cuh>

#include "kernels/rounding.cuh"

namespace gradus {

using namespace kernels;

GRADUS_CUDA_KERNEL(UnaryArgs, kFloatingTypes, UnaryKernel<Floor>);
GRADUS_CUDA_KERNEL(UnaryArgs, kFloatingTypes, UnaryKernel<Ceil>);
GRADUS_CUDA_KERNEL(UnaryArgs, kFloatingTypes, UnaryKernel<Round>);
GRADUS_CUDA_KERNEL(UnaryArgs, kFloatingTypes, UnaryKernel<Trunc>);
GRADUS_CUDA_KERNEL(BinaryArgs, kNumericTypes, BinaryKernel<FloorDivide>);
GRADUS_CUDA_KERNEL(BinaryArgs, kNumericTypes, BinaryKernel<TruncDivide>);
GRADUS_CUDA_KERNEL(BinaryArgs, kNumericTypes, BinaryKernel<Remainder>);
GRADUS_CUDA_KERNEL(BinaryArgs, kNumericTypes, BinaryKernel<Fmod>);

}  // namespace gradus
