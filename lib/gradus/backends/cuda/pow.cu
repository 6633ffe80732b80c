#include <gradus/backends/cuda/elementwise.cuh>

#include "kernels/arithmetic.cuh"
#include "kernels/pow.cuh"
#include "kernels/unary.cuh"

namespace gradus {

using namespace kernels;

GRADUS_CUDA_KERNEL(BinaryArgs, kNumericTypes, BinaryKernel<Pow>);
GRADUS_CUDA_KERNEL(UnaryArgs, kNumericTypes, UnaryKernel<WithNumber<Pow>>);
GRADUS_CUDA_KERNEL(UnaryArgs, kNumericTypes, UnaryKernel<Cube>);

}  // namespace gradus
