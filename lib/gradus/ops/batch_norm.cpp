#include <gradus/ops/arithmetic.h>
#include <gradus/ops/batch_norm.h>
#include <gradus/ops/common.h>
#include <gradus/ops/factories.h>
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
  for (const auto& [name, t, optional] : vectors) {
    GRADUS_CHECK(!t.defined() || t.sizes() == Shape{x.size(1)}, "E-SHAPE", "batch_norm: expected ", name,
                 " of shape [", x.size(1), "], one for each channel, got ",
                 t.defined() ? t.sizes() : Shape{});
  }
}

// What x is normalised with, as (1, C, 1, …) in float32 at least.
struct Statistics {
  Tensor mean, rstd;
};

// saved: x, weight, mean, rstd
struct BatchNormBackward : Node {
  BatchNormBackward(bool statistics_of_x, double epsilon) : of_x(statistics_of_x), eps(epsilon) {}
  const char* name() const override { return "BatchNormBackward"; }

  TensorList backward(const TensorList& grads) override {
    const DType dtype = saved(2).dtype();
    const Tensor x = saved(0).to(dtype), g = grads[0].to(dtype);
    TensorList out = GradMode::is_enabled() ? composed(x, g) : in_place(x, g);
    if (wants(0)) out[0] = out[0].to(grads[0].dtype());
    if (wants(1)) out[1] = out[1].view({x.size(1)}).to(weight_dtype);
    if (wants(2)) out[2] = out[2].view({x.size(1)}).to(bias_dtype);
    return out;
  }

  bool of_x;
  double eps;
  DType weight_dtype = kFloat32, bias_dtype = kFloat32;

 private:
  Tensor scale(const Tensor& rstd) const {
    const Tensor weight = saved(1);
    return weight.defined() ? rstd * per_channel(weight, saved(0).dim(), rstd.dtype()) : rstd;
  }

  // Differentiable: the batch's statistics are computed again, as functions of x.
  TensorList composed(const Tensor& x, const Tensor& g) const {
    const Dims over = all_but_channels(x.dim());
    Tensor centred = x - (of_x ? mean(x, over, true) : saved(2));
    const Tensor rstd = of_x ? rsqrt(mean(centred * centred, over, true) + eps) : saved(3);
    const Tensor normal = centred * rstd;
    TensorList out(3);
    if (wants(0)) {
      const Tensor along = of_x ? g - mean(g, over, true) - normal * mean(g * normal, over, true) : g;
      out[0] = along * scale(rstd);
    }
    if (wants(1)) out[1] = sum(g * normal, over, true);
    if (wants(2)) out[2] = sum(g, over, true);
    return out;
  }

  // The same in few passes over two buffers.
  TensorList in_place(const Tensor& x, const Tensor& g) const {
    const Dims over = all_but_channels(x.dim());
    const Tensor rstd = saved(3);
    Tensor centred = x - saved(2);
    const Tensor along = sum(g * centred, over, true), total = sum(g, over, true);
    TensorList out(3);
    if (wants(1)) out[1] = along * rstd;
    if (wants(2)) out[2] = total;
    if (!wants(0)) return out;
    if (of_x) {
      const double share = 1 / static_cast<double>(x.numel() / x.size(1));
      centred.mul_(along * rstd * rstd * -share).add_(g).sub_(total * share).mul_(scale(rstd));
      out[0] = centred;
    } else {
      out[0] = g * scale(rstd);
    }
    return out;
  }
};

// running = (1 - momentum) running + momentum batch
void update(const Tensor& running, const Tensor& batch, double momentum) {
  Tensor target = running;
  target.mul_(1 - momentum).add_((batch.view(running.sizes()) * momentum).to(running.dtype()));
}

void check_count(const Tensor& x) {
  GRADUS_CHECK(x.numel() > x.size(1), "E-SHAPE",
               "batch_norm: Expected more than 1 value per channel when training, got input size ", x.sizes(),
               hint("use a larger batch, drop_last in the loader, or eval()"));
}

// The result without history, and what it was made with; moves the running statistics.
std::pair<Tensor, Statistics> normalise(const Tensor& x, const Tensor& running_mean,
                                        const Tensor& running_var, const Tensor& weight, const Tensor& bias,
                                        const BatchNormOptions& options, bool of_batch) {
  NoGradGuard no_grad;
  const DType dtype = promote_types(x.dtype(), kFloat32);
  const Dims over = all_but_channels(x.dim());
  const Tensor input = x.to(dtype);
  const auto channels = [&](const Tensor& t) { return per_channel(t, x.dim(), dtype); };
  Statistics s;
  Tensor y, variance;
  if (of_batch) {
    s.mean = mean(input, over, true);
    y = input - s.mean;
    variance = mean(y * y, over, true);
    const auto count = static_cast<double>(x.numel() / x.size(1));
    if (running_mean.defined()) update(running_mean, s.mean, options.momentum);
    if (running_var.defined()) update(running_var, variance * (count / (count - 1)), options.momentum);
  } else {  // an empty batch in training needs no statistics
    s.mean = channels(running_mean.defined() ? running_mean : zeros({x.size(1)}, dtype, x.device()));
    variance = channels(running_var.defined() ? running_var : ones({x.size(1)}, dtype, x.device()));
    y = input - s.mean;
  }
  s.rstd = rsqrt(variance + options.eps);
  y.mul_(weight.defined() ? s.rstd * channels(weight) : s.rstd);
  if (bias.defined()) y.add_(channels(bias));
  return {y.to(x.dtype()), s};
}

}  // namespace

Tensor batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var,
                  const Tensor& weight, const Tensor& bias, const BatchNormOptions& options) {
  ops::check_same_device("batch_norm", {{"input", x},
                                        {"running_mean", running_mean, true},
                                        {"running_var", running_var, true},
                                        {"weight", weight, true},
                                        {"bias", bias, true}});
  check(x,
        {{"running_mean", running_mean}, {"running_var", running_var}, {"weight", weight}, {"bias", bias}});
  GRADUS_CHECK(options.training || (running_mean.defined() && running_var.defined()), "E-ARG",
               "batch_norm: expected running_mean and running_var to be defined when training=false",
               hint("pass them, or training = true"));
  const bool of_batch = options.training && x.numel() > 0;
  if (of_batch) check_count(x);
  auto [y, s] = normalise(x, running_mean, running_var, weight, bias, options, of_batch);
  if (wants_grad(x, weight, bias)) {
    auto& node = record<BatchNormBackward>(y, {x, weight, bias}, of_batch, options.eps);
    node.save(x).save(weight).save(s.mean).save(s.rstd);
    if (weight.defined()) node.weight_dtype = weight.dtype();
    if (bias.defined()) node.bias_dtype = bias.dtype();
  }
  return y;
}

}  // namespace gradus
