// Smallest and largest of two values, element by element. NaN in either operand gives NaN.
#pragma once
#include <gradus/tensor/tensor.h>

#include <optional>

namespace gradus {

/// The smaller and the larger of a and b. Shapes broadcast and dtypes promote; where a and b are equal each
/// gets half of the gradient.
Tensor minimum(const Tensor& a, const Tensor& b);
Tensor maximum(const Tensor& a, const Tensor& b);

/// x limited to [min, max]; either bound may be left out, and max wins where min > max. The gradient is 1
/// inside and 0 at the bounds (as in PyTorch 2.15), outside and for NaN. An integer x with a fractional bound
/// becomes float32. Throws E-ARG if both are left out, E-DTYPE for bool.
Tensor clamp(const Tensor& x, std::optional<Scalar> min, std::optional<Scalar> max = {});

}  // namespace gradus
