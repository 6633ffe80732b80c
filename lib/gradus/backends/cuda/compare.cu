#include <gradus/backends/cuda/elementwise.cuh>

#include "kernels/arithmetic.cuh"
#include "kernels/compare.cuh"
#include "kernels/unary.cuh"

namespace gradus {

using namespace kernels;

GRADUS_CUDA_KERNEL(BinaryArgs, kNumericTypes, CompareKernel<Eq>);
GRADUS_CUDA_KERNEL(BinaryArgs, kNumericTypes, CompareKernel<Ne>);
GRADUS_CUDA_KERNEL(BinaryArgs, kNumericTypes, CompareKernel<Lt>);
GRADUS_CUDA_KERNEL(BinaryArgs, kNumericTypes, CompareKernel<Le>);
GRADUS_CUDA_KERNEL(UnaryArgs, kNumericTypes, UnaryTestKernel<WithNumber<Eq>>);
GRADUS_CUDA_KERNEL(UnaryArgs, kNumericTypes, UnaryTestKernel<WithNumber<Ne>>);
GRADUS_CUDA_KERNEL(UnaryArgs, kNumericTypes, UnaryTestKernel<WithNumber<Lt>>);
GRADUS_CUDA_KERNEL(UnaryArgs, kNumericTypes, UnaryTestKernel<WithNumber<Le>>);
GRADUS_CUDA_KERNEL(UnaryArgs, kNumericTypes, UnaryTestKernel<NumberWith<Lt>>);
GRADUS_CUDA_KERNEL(UnaryArgs, kNumericTypes, UnaryTestKernel<NumberWith<Le>>);
GRADUS_CUDA_KERNEL(UnaryArgs, kFloatingTypes, UnaryTestKernel<IsInf>);
GRADUS_CUDA_KERNEL(UnaryArgs, kFloatingTypes, UnaryTestKernel<IsFinite>);
// Of bools, each a byte that is 0 or 1.
GRADUS_CUDA_KERNEL(BinaryArgs, dtypes(kUInt8), CompareKernel<LogicalAnd>);
GRADUS_CUDA_KERNEL(BinaryArgs, dtypes(kUInt8), CompareKernel<LogicalOr>);
GRADUS_CUDA_KERNEL(BinaryArgs, dtypes(kUInt8), CompareKernel<LogicalXor>);

}  // namespace gradus
