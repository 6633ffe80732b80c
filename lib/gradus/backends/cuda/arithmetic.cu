#include <gradus/backends/cuda/elementwise.cuh>

#include "kernels/arithmetic.cuh"

namespace gradus {

using namespace kernels;

GRADUS_CUDA_KERNEL(BinaryArgs, kAllTypes, BinaryKernel<Add>);
GRADUS_CUDA_KERNEL(BinaryArgs, kNumericTypes, BinaryKernel<Sub>);
GRADUS_CUDA_KERNEL(BinaryArgs, kAllTypes, BinaryKernel<Mul>);
GRADUS_CUDA_KERNEL(BinaryArgs, kFloatingTypes, BinaryKernel<Div>);
GRADUS_CUDA_KERNEL(UnaryArgs, kAllTypes, UnaryKernel<WithNumber<Add>>);
GRADUS_CUDA_KERNEL(UnaryArgs, kNumericTypes, UnaryKernel<WithNumber<Sub>>);
GRADUS_CUDA_KERNEL(UnaryArgs, kAllTypes, UnaryKernel<WithNumber<Mul>>);
GRADUS_CUDA_KERNEL(UnaryArgs, kFloatingTypes, UnaryKernel<WithNumber<Div>>);
GRADUS_CUDA_KERNEL(UnaryArgs, kNumericTypes, UnaryKernel<NumberWith<Sub>>);

}  // namespace gradus
