#include <gradus/ops/arithmetic.h>
#include <gradus/ops/batch_norm.h>
#include <gradus/ops/common.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/norm.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/unary.h>

namespace gradus {
namespace {

// (C) as (1, C, 1, …), in float32 at least.
Tensor per_channel(const Tensor& t, int ndim, DType dtype) {
  Shape sizes = Shape::filled(ndim, 1);
  sizes[1] = t.size(0);
  return t.to(dtype).view(sizes);
}

Dims all_but_channels(int ndim) {
  Dims dims;
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

// What x is normalised with, as (1, C, 1, …) in float32 at least.
struct Statistics {
  Tensor mean, rstd;
};

Statistics of_batch(const Tensor& x, double eps) {
  const Dims over = all_but_channels(x.dim());
  return {mean(x, over, true), rsqrt(var(x, over, true, 0) + eps)};
}

// saved: x, weight, mean, rstd
struct BatchNormBackward : Node {
  BatchNormBackward(bool statistics_of_x, double epsilon) : of_x(statistics_of_x), eps(epsilon) {}
  const char* name() const override { return "BatchNormBackward"; }

  TensorList backward(const TensorList& grads) override {
    const DType dtype = saved(2).dtype();
    const Tensor x = saved(0).to(dtype), weight = saved(1), g = grads[0].to(dtype);
    Statistics s{saved(2), saved(3)};
    if (of_x && GradMode::is_enabled()) s = of_batch(x, eps);  // the second derivative goes through them
    const Dims over = all_but_channels(x.dim());
    const Tensor normal = (x - s.mean) * s.rstd;
    TensorList out(3);
    if (wants(0)) {
      const Tensor scale = weight.defined() ? s.rstd * per_channel(weight, x.dim(), dtype) : s.rstd;
      const Tensor along = of_x ? g - mean(g, over, true) - normal * mean(g * normal, over, true) : g;
      out[0] = (along * scale).to(grads[0].dtype());
    }
    if (wants(1)) out[1] = sum(g * normal, over).to(input_dtypes[0]);
    if (wants(2)) out[2] = sum(g, over).to(input_dtypes[1]);
    return out;
  }

  bool of_x;
  double eps;
  DType input_dtypes[2] = {kFloat32, kFloat32};  // of weight and bias
};

// running = (1 - momentum) running + momentum batch
void update(const Tensor& running, const Tensor& batch, double momentum) {
  Tensor target = running;
  target.mul_(1 - momentum).add_((batch.view(running.sizes()) * momentum).to(running.dtype()));
}

// The batch's statistics; takes them into the running ones.
Statistics train(const Tensor& x, const Tensor& running_mean, const Tensor& running_var,
                 const BatchNormOptions& options) {
  const int64_t count = x.numel() / x.size(1);
  GRADUS_CHECK(count > 1, "E-SHAPE",
               "batch_norm: Expected more than 1 value per channel when training, got input size ", x.sizes(),
               hint("use a larger batch, drop_last in the loader, or eval()"));
  const Dims over = all_but_channels(x.dim());
  const Tensor average = mean(x, over, true), variance = var(x, over, true, 0);
  if (running_mean.defined()) update(running_mean, average, options.momentum);
  if (running_var.defined()) {
    const double unbiased = static_cast<double>(count) / static_cast<double>(count - 1);
    update(running_var, variance * unbiased, options.momentum);
  }
  return {average, rsqrt(variance + options.eps)};
}

Tensor normalise(const Tensor& x, const Statistics& s, const Tensor& weight, const Tensor& bias) {
  const DType dtype = x.dtype();
  Tensor y = x - s.mean;
  y.mul_(weight.defined() ? s.rstd * per_channel(weight, x.dim(), dtype) : s.rstd);
  if (bias.defined()) y.add_(per_channel(bias, x.dim(), dtype));
  return y;
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
  const bool of_batch = options.training && x.numel() > 0;
  Tensor y;
  Statistics s;
  {
    NoGradGuard no_grad;
    const DType dtype = promote_types(x.dtype(), kFloat32);
    const Tensor input = x.to(dtype);
    if (of_batch) {
      s = train(input, running_mean, running_var, options);
    } else if (running_mean.defined() && running_var.defined()) {
      s = {per_channel(running_mean, x.dim(), dtype),
           rsqrt(per_channel(running_var, x.dim(), dtype) + options.eps)};
    } else {  // an empty batch in training: nothing to normalise
      s.mean = zeros(Shape{x.size(1)}, dtype, x.device());
      s = {per_channel(s.mean, x.dim(), dtype), per_channel(s.mean, x.dim(), dtype)};
    }
    y = normalise(input, s, weight, bias).to(x.dtype());
  }
  if (wants_grad(x, weight, bias)) {
    auto& node = record<BatchNormBackward>(y, {x, weight, bias}, of_batch, options.eps);
    node.save(x).save(weight).save(s.mean).save(s.rstd);
    if (weight.defined()) node.input_dtypes[0] = weight.dtype();
    if (bias.defined()) node.input_dtypes[1] = bias.dtype();
  }
  return y;
}

}  // namespace gradus
