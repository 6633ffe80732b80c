// Rounding to whole numbers, and the divisions that round. These functions are steps: their gradient, where
// they have one, is 0 almost everywhere.
#pragma once
#include <gradus/tensor/tensor.h>

namespace gradus {

/// The nearest whole number below, above, nearest (half to even) and towards zero. Integers stay as they are;
/// throws E-NOT-IMPLEMENTED for bool.
Tensor floor(const Tensor& x);
Tensor ceil(const Tensor& x);
Tensor round(const Tensor& x);
Tensor trunc(const Tensor& x);
/// -1, 0 or 1; 0 for NaN. Throws E-NOT-IMPLEMENTED for bool.
Tensor sign(const Tensor& x);

/// How div() rounds its quotient: towards -inf or towards 0.
enum class Rounding { floor, trunc };

// Shapes broadcast and dtypes promote as in div(), but integers stay integers. Integer division by zero
// throws E-DIVISION; floating division by zero gives inf or NaN. Two bools throw E-NOT-IMPLEMENTED.

/// a / b, rounded: -3 / 2 gives -2 (floor) or -1 (trunc).
Tensor div(const Tensor& a, const Tensor& b, Rounding rounding);
Tensor div(const Tensor& a, Scalar b, Rounding rounding);
/// div(a, b, Rounding::floor)
Tensor floor_divide(const Tensor& a, const Tensor& b);
Tensor floor_divide(const Tensor& a, Scalar b);
/// a - b * floor(a / b): has b's sign, as Python's %. Differentiable in both.
Tensor remainder(const Tensor& a, const Tensor& b);
Tensor remainder(const Tensor& a, Scalar b);
/// a - b * trunc(a / b): has a's sign, as C's %. Differentiable in both.
Tensor fmod(const Tensor& a, const Tensor& b);
Tensor fmod(const Tensor& a, Scalar b);

}  // namespace gradus
