// Initial values of parameters, as torch::nn::init. Each fills its argument in place, without recording, from
// the default generator, and returns it. Fans: weight (out, in, …): fan_in = in x window, fan_out = out x
// window.
#pragma once
#include <gradus/tensor/tensor.h>

namespace gradus::nn::init {

Tensor uniform_(Tensor t, double from = 0, double to = 1);
Tensor normal_(Tensor t, double mean = 0, double std = 1);
Tensor constant_(Tensor t, double value);
Tensor zeros_(Tensor t);
Tensor ones_(Tensor t);
/// U(-b, b) with b = gain sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010).
Tensor xavier_uniform_(Tensor t, double gain = 1);
/// N(0, gain^2 2 / (fan_in + fan_out)).
Tensor xavier_normal_(Tensor t, double gain = 1);
/// U(-b, b) with b = sqrt(6 / ((1 + a^2) fan_in)) (He et al. 2015); a is the slope of the leaky ReLU that
/// follows.
Tensor kaiming_uniform_(Tensor t, double a = 0);
/// N(0, 2 / ((1 + a^2) fan_in)).
Tensor kaiming_normal_(Tensor t, double a = 0);

/// Numbers of inputs and outputs that meet in one weight. Throws E-SHAPE below 2 dimensions.
struct Fans {
  int64_t in, out;
};
Fans calculate_fan_in_and_fan_out(const Tensor& weight);

}  // namespace gradus::nn::init
