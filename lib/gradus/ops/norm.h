// Variance, norms and log-sum-exp. `dims` and keepdim as in reduce.h. Floating tensors only, else E-DTYPE.
#pragma once
#include <gradus/ops/reduce.h>

namespace gradus {

/// The mean squared distance from the mean, dividing by the number of elements minus `correction` (0: the
/// biased variance); NaN where that is 0 or below.
Tensor var(const Tensor& x, const Dims& dims = {}, bool keepdim = false, double correction = 1);
/// sqrt(var); its gradient is 0 where it is 0.
Tensor std(const Tensor& x, const Dims& dims = {}, bool keepdim = false, double correction = 1);

/// (sum |x|^p)^(1/p); p = infinity: the largest |x|, -infinity: the smallest, 0: how many are not 0.
/// The gradient at the zero vector is 0. Throws E-SHAPE for an infinite p and no elements.
Tensor norm(const Tensor& x, double p = 2, const Dims& dims = {}, bool keepdim = false);

/// log(sum(exp(x))), computed without overflow; -inf of no elements.
Tensor logsumexp(const Tensor& x, const Dims& dims, bool keepdim = false);

}  // namespace gradus
