#include "kernels/layer_norm.cuh"

#include <gradus/ops/arithmetic.h>
#include <gradus/ops/autocast.h>
#include <gradus/ops/common.h>
#include <gradus/ops/layer_norm.h>
#include <gradus/ops/reduce.h>

namespace gradus {
namespace {

constexpr auto kLayerNorm =
    KernelTable<LayerNormArgs>("layer_norm").everywhere<LayerNormKernel, kFloatingTypes>();
constexpr auto kLayerNormBackward = KernelTable<LayerNormBackwardArgs>("layer_norm_backward")
                                        .everywhere<LayerNormBackwardKernel, kFloatingTypes>();

// The first (or, with `last`, the last) dimensions of a tensor whose last `normalized` ones are normalised.
Dims dimensions(int dim, int normalized, bool last) {
  Dims dims;
  for (int d = last ? dim - normalized : 0; d < (last ? dim : dim - normalized); ++d) dims.push_back(d);
  return dims;
}

// saved: x, weight, mean, rstd
struct LayerNormBackward : Node {
  LayerNormBackward(const Shape& shape, double epsilon) : normalized(shape), eps(epsilon) {}
  const char* name() const override { return "LayerNormBackward"; }
  TensorList backward(const TensorList& g) override {
    return GradMode::is_enabled() ? composed(g[0]) : fused(g[0]);
  }

 private:
  TensorList fused(const Tensor& grad) const {
    const Tensor x = saved(0).contiguous(), weight = saved(1), mean = saved(2), rstd = saved(3);
    const Tensor dy = grad.contiguous();
    const auto output = [&](size_t input, const Shape& sizes) {
      return wants(input) ? empty(sizes, x.dtype(), x.device()) : Tensor();
    };
    const TensorList grads{output(0, x.sizes()), output(1, normalized), output(2, normalized)};
    launch(kLayerNormBackward, x.dtype(), ops::stream_of(x),
           LayerNormBackwardArgs{x.arg(), ops::optional_arg(weight), dy.arg(), mean.arg(), rstd.arg(),
                                 ops::optional_arg(grads[0]), ops::optional_arg(grads[1]),
                                 ops::optional_arg(grads[2]), mean.numel(), normalized.numel()});
    return grads;
  }

  // The kernel's formula made of operations.
  TensorList composed(const Tensor& g) const {
    const Tensor x = saved(0), weight = saved(1);
    const Dims over = dimensions(x.dim(), normalized.size(), true);
    const Tensor centred = x - mean(x, over, true);
    const Tensor rstd = (mean(centred * centred, over, true) + eps).pow(-0.5), normal = centred * rstd;
    const Tensor gw = weight.defined() ? g * weight : g;
    TensorList grads{Tensor(), Tensor(), Tensor()};
    if (wants(0)) grads[0] = rstd * (gw - mean(gw, over, true) - normal * mean(gw * normal, over, true));
    if (wants(1)) grads[1] = sum_to_size(g * normal, normalized);
    if (wants(2)) grads[2] = sum_to_size(g, normalized);
    return grads;
  }

  Shape normalized;
  double eps;
};

void check_parameter(const Tensor& p, const char* name, const Tensor& x, const Shape& normalized) {
  if (!p.defined()) return;
  GRADUS_CHECK(p.sizes() == normalized, "E-SHAPE", "layer_norm: expected ", name, " of the normalized shape ",
               normalized, ", got ", p.sizes());
  GRADUS_CHECK(p.dtype() == x.dtype(), "E-DTYPE", "layer_norm: input is ", to_string(x.dtype()), ", ", name,
               " is ", to_string(p.dtype()), hint("convert one with .to(dtype)"));
}

void check(const Tensor& x, const Shape& normalized, const Tensor& weight, const Tensor& bias) {
  ops::check_same_device("layer_norm", {{"input", x}, {"weight", weight, true}, {"bias", bias, true}});
  const int first = x.dim() - normalized.size();
  bool fits = !normalized.empty() && first >= 0;
  for (int d = 0; fits && d < normalized.size(); ++d) fits = x.sizes()[first + d] == normalized[d];
  GRADUS_CHECK(fits, "E-SHAPE", "layer_norm: Given normalized_shape=", normalized,
               ", expected input with shape [*, ...] ending in these sizes, but got input of size ",
               x.sizes());
  check_parameter(weight, "weight", x, normalized);
  check_parameter(bias, "bias", x, normalized);
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight, const Tensor& bias,
                  double eps) {
  if (const auto cast = ops::autocast(ops::kFloat32OnGpu, x))
    return layer_norm(cast(x), normalized_shape, cast(weight), cast(bias), eps);
  // Half activations in a float32 model, which is what autocast makes.
  const auto is_wide = [&](const Tensor& p) { return p.defined() && p.dtype() == kFloat32; };
  if (x.defined() && element_size(x.dtype()) == 2 && (is_wide(weight) || is_wide(bias)))
    return layer_norm(x.to(kFloat32), normalized_shape, weight, bias, eps).to(x.dtype());
  check(x, normalized_shape, weight, bias);
  const Tensor in = x.contiguous(), w = weight.defined() ? weight.contiguous() : weight,
               b = bias.defined() ? bias.contiguous() : bias;
  const int64_t cols = normalized_shape.numel(), rows = cols == 0 ? 0 : x.numel() / cols;
  const DType wide = element_size(x.dtype()) < 4 ? kFloat32 : x.dtype();
  Tensor y = empty(x.sizes(), x.dtype(), x.device());
  const Tensor mean = empty({rows}, wide, x.device()), rstd = empty({rows}, wide, x.device());
  launch(kLayerNorm, x.dtype(), ops::stream_of(y),
         LayerNormArgs{in.arg(), ops::optional_arg(w), ops::optional_arg(b), y.arg(), mean.arg(), rstd.arg(),
                       rows, cols, eps});
  if (wants_grad(x, weight, bias)) {
    record<LayerNormBackward>(y, {x, weight, bias}, normalized_shape, eps)
        .save(x)
        .save(w)
        .save(mean)
        .save(rstd);
  }
  return y;
}

}  // namespace gradus
