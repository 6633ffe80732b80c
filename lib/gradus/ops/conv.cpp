#include "kernels/conv.cuh"

#include <gradus/ops/autocast.h>
#include <gradus/ops/common.h>
#include <gradus/ops/conv.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/image.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/view.h>

namespace gradus {
namespace {

using ops::dense_image;
using ops::empty_image;

constexpr auto kConv =
    KernelTable<ConvArgs>("conv2d").host(kFloatingTypes, &conv_cpu).cuda<&conv_cuda>(kFloatingTypes);
constexpr auto kGradInput = KernelTable<ConvGradInputArgs>("conv2d_input")
                                .host(kFloatingTypes, &conv_grad_input_cpu)
                                .cuda<&conv_grad_input_cuda>(kFloatingTypes);
constexpr auto kGradWeight = KernelTable<ConvGradWeightArgs>("conv2d_weight")
                                 .host(kFloatingTypes, &conv_grad_weight_cpu)
                                 .cuda<&conv_grad_weight_cuda>(kFloatingTypes);

Window window_of(const Conv2dOptions& o) {
  return {{o.stride.h, o.stride.w}, {o.padding.h, o.padding.w}, {o.dilation.h, o.dilation.w}, o.groups};
}

Shape output_sizes(const char* op, const Shape& x, const Shape& w, const Conv2dOptions& o) {
  return {x[0], w[0], ops::window_count(op, x[2], w[2], o.stride.h, o.padding.h, o.dilation.h),
          ops::window_count(op, x[3], w[3], o.stride.w, o.padding.w, o.dilation.w)};
}

void check_sizes(const char* op, const Shape& x, const Shape& w, const Conv2dOptions& o) {
  GRADUS_CHECK(x.size() == 4 && w.size() == 4, "E-SHAPE", op,
               ": expected a 4-D input (N, C, H, W) and a 4-D weight, got ", x, " and ", w,
               hint("add missing dimensions with unsqueeze()"));
  GRADUS_CHECK(x[1] > 0 && w[0] > 0, "E-SHAPE", op, ": expected at least one channel, got an input of shape ",
               x, " and a weight of shape ", w);
  GRADUS_CHECK(o.groups >= 1 && w[0] % o.groups == 0, "E-ARG", op, ": ", w[0],
               " output channels do not divide into ", o.groups, " groups");
  GRADUS_CHECK(x[1] == w[1] * o.groups, "E-SHAPE", op, ": expected input of shape ", x, " to have ",
               w[1] * o.groups, " channels for a weight of shape ", w, " and ", o.groups, " groups, but got ",
               x[1], " channels");
}

void check(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dOptions& o) {
  ops::check_same_device("conv2d", {{"input", x}, {"weight", w}, {"bias", bias, true}});
  GRADUS_CHECK(x.dtype() == w.dtype() && (!bias.defined() || bias.dtype() == x.dtype()), "E-DTYPE",
               "conv2d: expected input, weight and bias to have the same dtype, but got ",
               to_string(x.dtype()), " and ", to_string(w.dtype()),
               hint("convert the input with .to(weight.dtype())"));
  check_sizes("conv2d", x.sizes(), w.sizes(), o);
  GRADUS_CHECK(!bias.defined() || (bias.dim() == 1 && bias.size(0) == w.size(0)), "E-SHAPE",
               "conv2d: expected a bias of shape [", w.size(0), "], got ", bias.sizes());
}

// Of the gradients: t is the operand that is not differentiated by.
void check_gradient(const char* op, const Shape& x, const Shape& w, ops::NamedTensor t, const Tensor& g,
                    const Conv2dOptions& o) {
  ops::check_same_device(op, {t, {"grad_output", g}});
  GRADUS_CHECK(t.tensor.dtype() == g.dtype(), "E-DTYPE", op, ": ", t.name, " is ",
               to_string(t.tensor.dtype()), ", grad_output ", to_string(g.dtype()),
               hint("convert one with .to(dtype)"));
  check_sizes(op, x, w, o);
  const Shape expected = output_sizes(op, x, w, o);
  GRADUS_CHECK(g.sizes() == expected, "E-SHAPE", op, ": expected grad_output of shape ", expected,
               " for an input of shape ", x, " and a weight of shape ", w, ", got ", g.sizes());
}

std::pair<Tensor, Tensor> grad_weight_and_bias(const Tensor& x, const Shape& w_sizes, const Tensor& g,
                                               const Conv2dOptions& o, bool want_bias);

// The three products are linear in each operand, so each one's derivatives are the other two.
struct ConvBackward : Node {
  ConvBackward(const Shape& x, const Shape& w, const Conv2dOptions& o) : x_sizes(x), w_sizes(w), options(o) {}
  const char* name() const override { return "ConvolutionBackward"; }
  TensorList backward(const TensorList& g) override {
    TensorList out(3);
    if (wants(0)) out[0] = conv2d_input(x_sizes, saved(1), g[0], options);
    if (wants(1)) {
      std::tie(out[1], out[2]) = grad_weight_and_bias(saved(0), w_sizes, g[0], options, wants(2));
    } else if (wants(2)) {
      out[2] = g[0].sum({0, 2, 3});
    }
    return out;
  }
  Shape x_sizes, w_sizes;
  Conv2dOptions options;
};

struct ConvInputBackward : Node {  // of gx(w, g)
  ConvInputBackward(const Shape& w, const Conv2dOptions& o) : w_sizes(w), options(o) {}
  const char* name() const override { return "ConvolutionInputBackward"; }
  TensorList backward(const TensorList& gg) override {
    return {wants(0) ? conv2d_weight(gg[0], w_sizes, saved(1), options) : Tensor(),
            wants(1) ? conv2d(gg[0], saved(0), {}, options) : Tensor()};
  }
  Shape w_sizes;
  Conv2dOptions options;
};

struct ConvWeightBackward : Node {  // of gw(x, g) and gbias(g)
  ConvWeightBackward(const Shape& x, const Conv2dOptions& o) : x_sizes(x), options(o) {}
  const char* name() const override { return "ConvolutionWeightBackward"; }
  TensorList backward(const TensorList& gg) override {
    const Tensor g = saved(1);
    TensorList out(2);
    if (wants(0) && gg[0].defined()) out[0] = conv2d_input(x_sizes, gg[0], g, options);
    if (wants(1)) {
      if (gg[0].defined()) out[1] = conv2d(saved(0), gg[0], {}, options);
      if (gg.size() > 1 && gg[1].defined()) {
        const Tensor from_bias = gg[1].reshape({1, g.size(1), 1, 1}).expand(g.sizes());
        out[1] = out[1].defined() ? out[1] + from_bias : from_bias;
      }
    }
    return out;
  }
  Shape x_sizes;
  Conv2dOptions options;
};

std::pair<Tensor, Tensor> grad_weight_and_bias(const Tensor& x, const Shape& w_sizes, const Tensor& g,
                                               const Conv2dOptions& o, bool want_bias) {
  const Tensor input = dense_image(x);
  const MemoryFormat format = input.suggest_memory_format();
  Tensor grads[2] = {empty(w_sizes, x.dtype(), x.device())};
  if (want_bias) grads[1] = empty({w_sizes[0]}, x.dtype(), x.device());
  if (g.numel() == 0 || x.numel() == 0) {
    for (Tensor& t : grads)
      if (t.defined()) t.zero_();
  } else {
    launch(kGradWeight, x.dtype(), ops::stream_of(x),
           ConvGradWeightArgs{g.contiguous(format).arg(), input.arg(), grads[0].arg(),
                              want_bias ? grads[1].arg() : TensorArg{}, window_of(o)});
  }
  if (wants_grad(x, g)) {
    const Tensor inputs[] = {x, g};
    record<ConvWeightBackward>(std::span(grads, want_bias ? 2 : 1), inputs, x.sizes(), o).save(x).save(g);
  }
  return {grads[0], grads[1]};
}

}  // namespace

Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias, const Conv2dOptions& options) {
  if (const auto cast = ops::autocast(ops::kLowerPrecision, input))
    return conv2d(cast(input), cast(weight), cast(bias), options);
  check(input, weight, bias, options);
  const Tensor x = dense_image(input), b = bias.defined() ? bias.contiguous() : bias;
  Tensor y = empty_image(output_sizes("conv2d", x.sizes(), weight.sizes(), options), x, x.dtype());
  if (y.numel() > 0) {
    launch(kConv, x.dtype(), ops::stream_of(x),
           ConvArgs{x.arg(), weight.arg(), ops::optional_arg(b), y.arg(), window_of(options)});
  }
  if (wants_grad(input, weight, bias)) {
    record<ConvBackward>(y, {input, weight, bias}, input.sizes(), weight.sizes(), options)
        .save(weight.requires_grad() ? input : Tensor())
        .save(input.requires_grad() ? weight : Tensor());
  }
  return y;
}

Tensor conv2d_input(const Shape& input_sizes, const Tensor& weight, const Tensor& grad_output,
                    const Conv2dOptions& options) {
  check_gradient("conv2d_input", input_sizes, weight.sizes(), {"weight", weight}, grad_output, options);
  const Tensor g = dense_image(grad_output);
  Tensor gx = empty_image(input_sizes, g, g.dtype());
  if (g.numel() == 0 || gx.numel() == 0) {
    gx.zero_();
  } else {
    launch(kGradInput, g.dtype(), ops::stream_of(g),
           ConvGradInputArgs{g.arg(), weight.arg(), gx.arg(), window_of(options)});
  }
  if (wants_grad(weight, grad_output))
    record<ConvInputBackward>(gx, {weight, grad_output}, weight.sizes(), options)
        .save(weight)
        .save(grad_output);
  return gx;
}

Tensor conv2d_weight(const Tensor& input, const Shape& weight_sizes, const Tensor& grad_output,
                     const Conv2dOptions& options) {
  check_gradient("conv2d_weight", input.sizes(), weight_sizes, {"input", input}, grad_output, options);
  return grad_weight_and_bias(input, weight_sizes, grad_output, options, false).first;
}

}  // namespace gradus
