#pragma once
#include <gradus/tensor/tensor.h>

namespace gradus {

/// (x - mean) / sqrt(var + eps) * weight + bias, mean and (biased) variance over the last dimensions, whose
/// sizes are `normalized_shape`. weight and bias are of that shape, or left out. Floating x, weight and bias
/// of one dtype, else E-DTYPE. Throws E-SHAPE where the last sizes differ.
Tensor layer_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight = {},
                  const Tensor& bias = {}, double eps = 1e-5);

}  // namespace gradus
