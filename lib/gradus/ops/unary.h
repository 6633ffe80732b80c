// Functions of one tensor, element by element. Integer and bool inputs of the real functions (exp, sqrt …)
// become float32; the half types are computed in float32 and rounded once. The result is laid out like x.
// All are differentiable any number of times.
#pragma once
#include <gradus/tensor/tensor.h>

namespace gradus {

/// -x. Throws E-NOT-IMPLEMENTED for bool.
Tensor neg(const Tensor& x);
/// |x|; its gradient at 0 is 0. Throws E-NOT-IMPLEMENTED for bool.
Tensor abs(const Tensor& x);
/// x * x
Tensor square(const Tensor& x);
/// 1 / x
Tensor reciprocal(const Tensor& x);

/// e^x
Tensor exp(const Tensor& x);
/// e^x - 1, exact for small x
Tensor expm1(const Tensor& x);
/// Natural logarithm: -inf at 0, NaN below.
Tensor log(const Tensor& x);
/// log(1 + x), exact for small x
Tensor log1p(const Tensor& x);
/// NaN below 0; its gradient at 0 is inf.
Tensor sqrt(const Tensor& x);
/// 1 / sqrt(x)
Tensor rsqrt(const Tensor& x);
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
/// Error function.
Tensor erf(const Tensor& x);

}  // namespace gradus
