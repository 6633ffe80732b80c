// Comparisons and logic, element by element. Shapes broadcast (else E-SHAPE), operands are on one device
// (else E-DEVICE-MISMATCH); the result is bool and has no gradient. Comparing with NaN gives false, but for
// ne.
#pragma once
#include <gradus/tensor/tensor.h>

namespace gradus {

// Compared in the promoted dtype: an int64 tensor with 0.5 in float32. The operators == != < <= > >= are
// these.
Tensor eq(const Tensor& a, const Tensor& b);
Tensor ne(const Tensor& a, const Tensor& b);
Tensor lt(const Tensor& a, const Tensor& b);
Tensor le(const Tensor& a, const Tensor& b);
Tensor gt(const Tensor& a, const Tensor& b);
Tensor ge(const Tensor& a, const Tensor& b);
Tensor eq(const Tensor& a, Scalar b);
Tensor ne(const Tensor& a, Scalar b);
Tensor lt(const Tensor& a, Scalar b);
Tensor le(const Tensor& a, Scalar b);
Tensor gt(const Tensor& a, Scalar b);
Tensor ge(const Tensor& a, Scalar b);

/// True where x is NaN, infinite, or neither. Integers are always finite.
Tensor isnan(const Tensor& x);
Tensor isinf(const Tensor& x);
Tensor isfinite(const Tensor& x);

/// Any dtype: what is not 0 is true, NaN included.
Tensor logical_not(const Tensor& x);
Tensor logical_and(const Tensor& a, const Tensor& b);
Tensor logical_or(const Tensor& a, const Tensor& b);
Tensor logical_xor(const Tensor& a, const Tensor& b);

/// |a - b| <= atol + rtol |b|, element by element; infinities are close to themselves, NaN to nothing, or
/// with equal_nan to NaN. Throws E-DTYPE unless the dtypes are equal.
Tensor isclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8,
               bool equal_nan = false);
/// Whether all elements are close; waits for the device.
bool allclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8,
              bool equal_nan = false);
/// Whether shapes and all elements are equal; waits for the device. Throws E-DTYPE unless the dtypes are.
bool equal(const Tensor& a, const Tensor& b);

}  // namespace gradus
