#pragma once
#include <gradus/tensor/tensor.h>

namespace gradus {

/// exp(x - max(x)) / sum(exp(x - max(x))) along `dim`. Floating tensors of any shape, else E-NOT-IMPLEMENTED;
/// E-DIM for a dimension out of range. A row of -inf only, or with a NaN or +inf, gives NaN.
Tensor softmax(const Tensor& x, int64_t dim);
/// The logarithm of softmax, computed without overflow or underflow.
Tensor log_softmax(const Tensor& x, int64_t dim);

}  // namespace gradus
