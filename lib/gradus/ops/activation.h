// Activation functions, element by element. Integer and bool inputs become float32, but for relu, which
// keeps integers. The result has x's shape and layout. All are differentiable any number of times; the first
// derivative is one kernel.
#pragma once
#include <gradus/tensor/tensor.h>

#include <string_view>

namespace gradus {

/// max(x, 0); its gradient at 0 is 0. NaN stays NaN.
Tensor relu(const Tensor& x);
/// x for x > 0, else negative_slope * x
Tensor leaky_relu(const Tensor& x, double negative_slope = 0.01);
/// 1 / (1 + e^-x)
Tensor sigmoid(const Tensor& x);
Tensor tanh(const Tensor& x);
/// x sigmoid(x)
Tensor silu(const Tensor& x);
/// x times the normal distribution's cumulative function; approximate = "tanh" gives
/// x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). Throws E-ARG for other names than "none" and "tanh".
Tensor gelu(const Tensor& x, std::string_view approximate = "none");
/// log(1 + exp(beta x)) / beta, and x where beta x > threshold
Tensor softplus(const Tensor& x, double beta = 1, double threshold = 20);

}  // namespace gradus
