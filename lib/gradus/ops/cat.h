// Joining, padding and repeating. All take any dtype and have gradients of every order.
#pragma once
#include <gradus/tensor/tensor.h>

#include <initializer_list>
#include <span>

namespace gradus {

/// Joins tensors along a dimension; all other sizes must agree (else E-SHAPE), dtypes are promoted. A 1-D
/// tensor without elements is skipped. Channels-last where all inputs are.
Tensor cat(std::span<const Tensor> tensors, int64_t dim = 0);
Tensor cat(std::initializer_list<Tensor> tensors, int64_t dim = 0);
/// Joins tensors of one shape along a new dimension.
Tensor stack(std::span<const Tensor> tensors, int64_t dim = 0);
Tensor stack(std::initializer_list<Tensor> tensors, int64_t dim = 0);

/// Adds `value` before and after: pads = {left, right} of the last dimension, then {top, bottom} of the one
/// before it, and so on. Negative numbers cut elements off.
Tensor pad(const Tensor& x, const Shape& pads, Scalar value = 0);
enum class PadMode : uint8_t { constant, reflect, replicate };
/// Continues x by mirroring it at its border element (reflect: pads < size) or repeating that (replicate).
Tensor pad(const Tensor& x, const Shape& pads, PadMode mode);

/// Reverses the order along the dimensions.
Tensor flip(const Tensor& x, const Shape& dims);
/// x beside itself, repeats[d] times along dimension d; more repeats than dimensions add some in front.
Tensor repeat(const Tensor& x, const Shape& repeats);

}  // namespace gradus
