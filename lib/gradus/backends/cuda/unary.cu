#include <gradus/backends/cuda/elementwise.cuh>

#include "kernels/unary.cuh"

namespace gradus {

using namespace kernels;

GRADUS_CUDA_KERNEL(UnaryArgs, kNumericTypes, UnaryKernel<Neg>);
GRADUS_CUDA_KERNEL(UnaryArgs, kNumericTypes, UnaryKernel<Abs>);
GRADUS_CUDA_KERNEL(UnaryArgs, kNumericTypes, UnaryKernel<Sign>);
GRADUS_CUDA_KERNEL(UnaryArgs, kNumericTypes, UnaryKernel<Square>);
GRADUS_CUDA_KERNEL(UnaryArgs, kFloatingTypes, UnaryKernel<Reciprocal>);
GRADUS_CUDA_KERNEL(UnaryArgs, kFloatingTypes, UnaryKernel<Exp>);
GRADUS_CUDA_KERNEL(UnaryArgs, kFloatingTypes, UnaryKernel<Expm1>);
GRADUS_CUDA_KERNEL(UnaryArgs, kFloatingTypes, UnaryKernel<Log>);
GRADUS_CUDA_KERNEL(UnaryArgs, kFloatingTypes, UnaryKernel<Log1p>);
GRADUS_CUDA_KERNEL(UnaryArgs, kFloatingTypes, UnaryKernel<Sqrt>);
GRADUS_CUDA_KERNEL(UnaryArgs, kFloatingTypes, UnaryKernel<Rsqrt>);
GRADUS_CUDA_KERNEL(UnaryArgs, kFloatingTypes, UnaryKernel<Sin>);
GRADUS_CUDA_KERNEL(UnaryArgs, kFloatingTypes, UnaryKernel<Cos>);
GRADUS_CUDA_KERNEL(UnaryArgs, kFloatingTypes, UnaryKernel<Erf>);

}  // namespace gradus
