#include <gradus/ops/arithmetic.h>
#include <gradus/ops/batch_norm.h>
#include <gradus/ops/common.h>
#include <gradus/ops/unary.h>

namespace gradus {
namespace {

// (C) as (1, C, 1, …), in float32 at least.
Tensor per_channel(const Tensor& t, int ndim, DType dtype) {
  Shape sizes = Shape::filled(ndim, 1);
  sizes[1] = t.size(0);
  return t.to(dtype).view(sizes);
}

Shape all_but_channels(int ndim) {
  Shape dims;
  for (int d = 0; d < ndim; ++d)
    if (d != 1) dims.push_back(d);
  return dims;
}

void check(const Tensor& x, std::initializer_list<ops::NamedTensor> vectors) {
  GRADUS_CHECK(x.dim() >= 2, "E-SHAPE",
               "batch_norm: expected an input (N, C, ...) of at least 2 dimensions, got shape ", x.sizes());
  GRADUS_CHECK(x.is_floating_point(), "E-DTYPE", "batch_norm: expected a floating point input, got ",
               to_string(x.dtype()), hint("convert it with .to(kFloat32)"));
  for (const auto& [name, t] : vectors) {
    GRADUS_CHECK(!t.defined() || t.sizes() == Shape{x.size(1)}, "E-SHAPE", "batch_norm: expected ", name,
                 " of shape [", x.size(1), "], one for each channel, got ",
                 t.defined() ? t.sizes() : Shape{});
  }
}

void update(const Tensor& running, const Tensor& batch, double momentum, double factor) {
  NoGradGuard no_grad;
  Tensor target = running;
  target.mul_(1 - momentum)
      .add_((batch.detach().view(running.sizes()) * (momentum * factor)).to(running.dtype()));
}

}  // namespace

Tensor batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var,
                  const Tensor& weight, const Tensor& bias, const BatchNormOptions& options) {
  ops::check_same_device("batch_norm", {{"input", x},
                                        {"running_mean", running_mean},
                                        {"running_var", running_var},
                                        {"weight", weight},
                                        {"bias", bias}});
  check(x,
        {{"running_mean", running_mean}, {"running_var", running_var}, {"weight", weight}, {"bias", bias}});
  GRADUS_CHECK(options.training || (running_mean.defined() && running_var.defined()), "E-ARG",
               "batch_norm: expected running_mean and running_var to be defined when training=false",
               hint("pass them, or training = true"));
  const DType dtype = promote_types(x.dtype(), kFloat32);
  const Tensor input = x.to(dtype);
  const int64_t count = x.size(1) == 0 ? 0 : x.numel() / x.size(1);
  Tensor centered, variance;
  if (options.training && count > 0) {
    GRADUS_CHECK(count > 1, "E-SHAPE",
                 "batch_norm: Expected more than 1 value per channel when training, got input size ",
                 x.sizes(), hint("use a larger batch, drop_last in the loader, or eval()"));
    const Shape dims = all_but_channels(x.dim());
    const Tensor mean = input.mean(dims, true);
    centered = input - mean;
    variance = (centered * centered).mean(dims, true);
    if (running_mean.defined()) update(running_mean, mean, options.momentum, 1.0);
    if (running_var.defined())
      update(running_var, variance, options.momentum,
             static_cast<double>(count) / static_cast<double>(count - 1));
  } else if (options.training) {
    return x.clone();  // nothing to normalise
  } else {
    centered = input - per_channel(running_mean, x.dim(), dtype);
    variance = per_channel(running_var, x.dim(), dtype);
  }
  Tensor scale = rsqrt(variance + options.eps);
  if (weight.defined()) scale = scale * per_channel(weight, x.dim(), dtype);
  Tensor y = centered * scale;
  if (bias.defined()) y = y + per_channel(bias, x.dim(), dtype);
  return y.to(x.dtype());
}

}  // namespace gradus
