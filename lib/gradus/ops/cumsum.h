#pragma once
#include <gradus/tensor/tensor.h>

namespace gradus {

/// Running sums along `dim`: y[i] = x[0] + … + x[i]. Any dtype; integers and bools give int64. Throws E-DIM.
Tensor cumsum(const Tensor& x, int64_t dim);

}  // namespace gradus
