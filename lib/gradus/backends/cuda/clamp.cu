#include <gradus/backends/cuda/elementwise.cuh>

#include "kernels/compare.cuh"
#include "kernels/unary.cuh"

namespace gradus {

using namespace kernels;

GRADUS_CUDA_KERNEL(BinaryArgs, kNumericTypes, BinaryKernel<Minimum>);
GRADUS_CUDA_KERNEL(BinaryArgs, kNumericTypes, BinaryKernel<Maximum>);
GRADUS_CUDA_KERNEL(UnaryArgs, kNumericTypes, UnaryKernel<Clamp>);

}  // namespace gradus
