#include "kernels/batch_norm.cuh"

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

constexpr auto kStatistics = KernelTable<BatchNormStatisticsArgs>("batch_norm_statistics")
                                 .everywhere<BatchNormStatisticsKernel, kFloatingTypes>();
constexpr auto kBatchNorm =
    KernelTable<BatchNormArgs>("batch_norm").everywhere<BatchNormKernel, kFloatingTypes>();
constexpr auto kSums =
    KernelTable<BatchNormSumsArgs>("batch_norm_sums").everywhere<BatchNormSumsKernel, kFloatingTypes>();
constexpr auto kBackward = KernelTable<BatchNormBackwardArgs>("batch_norm_backward")
                               .everywhere<BatchNormBackwardKernel, kFloatingTypes>();

DType wide(const Tensor& x) { return promote_types(x.dtype(), kFloat32); }

// Of an x that is dense in its memory format.
ChannelLayout layout_of(const Tensor& x) {
  const int64_t channels = x.size(1), rows = channels == 0 ? 0 : x.numel() / channels;
  const int64_t inner = x.size(0) == 0 ? 0 : rows / x.size(0);
  if (channels == 1 && inner == 1) return {rows, 1, rows, false};  // a plane of its own
  const bool last = inner <= 1 || x.suggest_memory_format() == MemoryFormat::channels_last;
  return {rows, channels, inner, last};
}

// (C), of that dtype and dense, as kernels want it; or undefined.
Tensor vector(const Tensor& t, DType dtype) { return t.defined() ? t.to(dtype).contiguous() : t; }

// saved: x, weight, mean, rstd; the latter (C), in float32 at least
struct BatchNormBackward : Node {
  BatchNormBackward(bool statistics_of_x, double epsilon) : of_x(statistics_of_x), eps(epsilon) {}
  const char* name() const override { return "BatchNormBackward"; }

  TensorList backward(const TensorList& grads) override {
    TensorList out = GradMode::is_enabled() ? composed(grads[0]) : fused(grads[0]);
    const DType dtypes[] = {grads[0].dtype(), weight_dtype, bias_dtype};
    for (size_t i = 0; i < 3; ++i)
      if (wants(i)) out[i] = out[i].to(dtypes[i]);
    return out;
  }

  bool of_x;
  double eps;
  DType weight_dtype = kFloat32, bias_dtype = kFloat32;

 private:
  // Differentiable: the batch's statistics are computed again, as functions of x.
  TensorList composed(const Tensor& grad) const {
    const DType dtype = wide(saved(0));
    const Tensor x = saved(0).to(dtype), g = grad.to(dtype), weight = saved(1);
    const Dims over = all_but_channels(x.dim());
    const Tensor centred = x - (of_x ? mean(x, over, true) : per_channel(saved(2), x.dim(), dtype));
    const Tensor rstd =
        of_x ? rsqrt(mean(centred * centred, over, true) + eps) : per_channel(saved(3), x.dim(), dtype);
    const Tensor normal = centred * rstd;
    TensorList out(3);
    if (wants(0)) {
      const Tensor along = of_x ? g - mean(g, over, true) - normal * mean(g * normal, over, true) : g;
      out[0] = along * (weight.defined() ? rstd * per_channel(weight, x.dim(), dtype) : rstd);
    }
    if (wants(1)) out[1] = sum(g * normal, over);
    if (wants(2)) out[2] = sum(g, over);
    return out;
  }

  // The same in few passes.
  TensorList fused(const Tensor& grad) const {
    const MemoryFormat format = saved(0).suggest_memory_format();
    const Tensor x = saved(0).contiguous(format), dy = grad.to(x.dtype()).contiguous(format);
    const Tensor mean = saved(2), rstd = saved(3), weight = vector(saved(1), mean.dtype());
    const ChannelLayout layout = layout_of(x);
    TensorList out(3);
    if (wants(0) && !of_x)
      out[0] = dy * per_channel(weight.defined() ? rstd * weight : rstd, x.dim(), mean.dtype());
    if (!wants(1) && !wants(2) && !(wants(0) && of_x)) return out;
    const Tensor sum = empty_like(mean), dot = empty_like(mean);
    launch(kSums, x.dtype(), ops::stream_of(x),
           BatchNormSumsArgs{x.arg(), dy.arg(), mean.arg(), rstd.arg(), sum.arg(), dot.arg(), layout});
    if (wants(1)) out[1] = dot;
    if (wants(2)) out[2] = sum;
    if (!wants(0) || !of_x) return out;
    out[0] = empty_like(x);
    launch(kBackward, x.dtype(), ops::stream_of(x),
           BatchNormBackwardArgs{x.arg(), dy.arg(), mean.arg(), rstd.arg(), ops::optional_arg(weight),
                                 sum.arg(), dot.arg(), out[0].arg(), layout});
    return out;
  }
};

void check_count(const Tensor& x) {
  GRADUS_CHECK(x.numel() > x.size(1), "E-SHAPE",
               "batch_norm: Expected more than 1 value per channel when training, got input size ", x.sizes(),
               hint("use a larger batch, drop_last in the loader, or eval()"));
}

// What a kernel wrote to `moved`, vector() of a running statistic, is that statistic now.
void keep(const Tensor& statistic, const Tensor& moved) {
  if (!statistic.defined()) return;
  if (moved.is_same(statistic)) return statistic.bump_version();
  Tensor target = statistic;
  target.copy_(moved);
}

// What x is normalised with, each (C) in float32 at least.
struct Statistics {
  Tensor mean, rstd;
};

// Of the batch; moves the running statistics.
Statistics batch_statistics(const Tensor& x, const Tensor& running_mean, const Tensor& running_var,
                            const BatchNormOptions& options) {
  const TensorOptions like{.dtype = wide(x), .device = x.device()};
  Statistics s{empty({x.size(1)}, like), empty({x.size(1)}, like)};
  const Tensor mean = vector(running_mean, wide(x)), var = vector(running_var, wide(x));
  launch(kStatistics, x.dtype(), ops::stream_of(x),
         BatchNormStatisticsArgs{x.arg(), ops::optional_arg(mean), ops::optional_arg(var), s.mean.arg(),
                                 s.rstd.arg(), layout_of(x), options.momentum, options.eps});
  keep(running_mean, mean);
  keep(running_var, var);
  return s;
}

// The given ones; an empty batch in training, which has none, takes any.
Statistics given_statistics(const Tensor& x, const Tensor& mean, const Tensor& var, double eps) {
  const auto made = [&](const Tensor& t, double otherwise) {
    return t.defined() ? vector(t, wide(x))
                       : full({x.size(1)}, otherwise, {.dtype = wide(x), .device = x.device()});
  };
  return {made(mean, 0), rsqrt(made(var, 1) + eps)};
}

Tensor normalise(const Tensor& x, const Statistics& s, const Tensor& weight, const Tensor& bias) {
  const Tensor w = vector(weight, wide(x)), b = vector(bias, wide(x)), y = empty_like(x);
  launch(kBatchNorm, x.dtype(), ops::stream_of(x),
         BatchNormArgs{x.arg(), s.mean.arg(), s.rstd.arg(), ops::optional_arg(w), ops::optional_arg(b),
                       y.arg(), layout_of(x)});
  return y;
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
  Tensor y;
  Statistics s;
  {
    NoGradGuard no_grad;
    const Tensor in = x.contiguous(x.suggest_memory_format());
    s = of_batch ? batch_statistics(in, running_mean, running_var, options)
                 : given_statistics(in, running_mean, running_var, options.eps);
    y = normalise(in, s, weight, bias);
  }
  if (wants_grad(x, weight, bias)) {
    auto& node = record<BatchNormBackward>(y, {x, weight, bias}, of_batch, options.eps);
    node.save(x).save(weight).save(s.mean).save(s.rstd);
    if (weight.defined()) node.weight_dtype = weight.dtype();
    if (bias.defined()) node.bias_dtype = bias.dtype();
  }
  return y;
}

}  // namespace gradus
