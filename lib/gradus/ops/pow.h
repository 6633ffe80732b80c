// Powers, element by element.
#pragma once
#include <gradus/tensor/tensor.h>

namespace gradus {

/// x^exponent with C's special cases: pow(x, 0) is 1 even for NaN, a negative x gives NaN unless exponent is
/// whole. Integers stay integers under a whole exponent that is not negative (a negative one throws E-ARG)
/// and wrap around on overflow; a fractional exponent makes them float32.
Tensor pow(const Tensor& x, Scalar exponent);
/// The same with shapes that broadcast and dtypes that promote. An integer power with a negative exponent is
/// 0, but for the bases 1 and -1.
Tensor pow(const Tensor& x, const Tensor& exponent);
Tensor pow(Scalar base, const Tensor& exponent);

}  // namespace gradus
