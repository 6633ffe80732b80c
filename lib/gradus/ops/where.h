// Choosing between values by a mask.
#pragma once
#include <gradus/tensor/tensor.h>

namespace gradus {

/// a where `condition`, else b. The three broadcast (else E-SHAPE), a and b promote to one dtype; condition
/// is bool (else E-DTYPE). The gradient of what was not chosen is 0 times what comes: a NaN or an infinity in
/// the derivative of the branch not taken still spoils the gradient, so mask its input too.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
Tensor where(const Tensor& condition, const Tensor& a, Scalar b);
Tensor where(const Tensor& condition, Scalar a, const Tensor& b);

/// x with `value` where `mask`, which is bool (else E-DTYPE) and broadcasts with x. Keeps x's dtype.
Tensor masked_fill(const Tensor& x, const Tensor& mask, Scalar value);

/// start + weight * (end - start). Shapes broadcast; the dtypes are floating and equal (else E-DTYPE).
Tensor lerp(const Tensor& start, const Tensor& end, Scalar weight);
Tensor lerp(const Tensor& start, const Tensor& end, const Tensor& weight);

/// x + value * a * b, with broadcasting and type promotion.
Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, Scalar value = 1);

}  // namespace gradus
