#include <gradus/nn/init.h>
#include <gradus/ops/random.h>
#include <gradus/tensor/grad_mode.h>

#include <cmath>

namespace gradus::nn::init {

Tensor uniform_(Tensor t, double from, double to) {
  NoGradGuard no_grad;
  return gradus::uniform_(t, from, to);
}
Tensor normal_(Tensor t, double mean, double std) {
  NoGradGuard no_grad;
  return gradus::normal_(t, mean, std);
}
Tensor constant_(Tensor t, double value) {
  NoGradGuard no_grad;
  return t.fill_(value);
}
Tensor zeros_(Tensor t) { return constant_(t, 0); }
Tensor ones_(Tensor t) { return constant_(t, 1); }

Fans calculate_fan_in_and_fan_out(const Tensor& weight) {
  GRADUS_CHECK(
      weight.dim() >= 2, "E-SHAPE",
      "init: fan in and fan out can not be computed for a tensor with fewer than 2 dimensions, got shape ",
      weight.sizes());
  const int64_t window = weight.numel() / std::max<int64_t>(1, weight.size(0) * weight.size(1));
  return {weight.size(1) * window, weight.size(0) * window};
}

static double per_fan(double numerator, int64_t fan) {
  return std::sqrt(numerator / static_cast<double>(std::max<int64_t>(1, fan)));
}

Tensor xavier_uniform_(Tensor t, double gain) {
  const Fans fans = calculate_fan_in_and_fan_out(t);
  const double bound = gain * per_fan(6, fans.in + fans.out);
  return init::uniform_(t, -bound, bound);
}
Tensor xavier_normal_(Tensor t, double gain) {
  const Fans fans = calculate_fan_in_and_fan_out(t);
  return init::normal_(t, 0, gain * per_fan(2, fans.in + fans.out));
}
Tensor kaiming_uniform_(Tensor t, double a) {
  const double bound = per_fan(6 / (1 + a * a), calculate_fan_in_and_fan_out(t).in);
  return init::uniform_(t, -bound, bound);
}
Tensor kaiming_normal_(Tensor t, double a) {
  return init::normal_(t, 0, per_fan(2 / (1 + a * a), calculate_fan_in_and_fan_out(t).in));
}

}  // namespace gradus::nn::init
