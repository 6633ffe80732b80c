#include <gradus/ops/common.h>
#include <gradus/ops/image.h>
#include <gradus/ops/pool.h>
#include <gradus/ops/view.h>

#include "kernels/avg_pool2d.cuh"
#include "kernels/max_pool2d.cuh"

namespace gradus {
namespace {

using ops::dense_image;
using ops::empty_image;

constexpr auto kMaxPool = KernelTable<MaxPoolArgs>("max_pool2d").everywhere<MaxPoolKernel, kFloatingTypes>();
constexpr auto kMaxPoolGrad =
    KernelTable<MaxPoolGradArgs>("max_pool2d_backward").everywhere<MaxPoolGradKernel, kFloatingTypes>();
constexpr auto kMaxPoolPick =
    KernelTable<MaxPoolPickArgs>("max_pool2d_pick").everywhere<MaxPoolPickKernel, kFloatingTypes>();
constexpr auto kMaxPoolIndex = KernelTable<MaxPoolIndexArgs>("max_pool2d_indices")
                                   .host(dtypes(kUInt8, kInt32), &MaxPoolIndexKernel::run)
                                   .cuda<&max_pool_indices_cuda>(dtypes(kUInt8, kInt32));
constexpr auto kAvgPool = KernelTable<AvgPoolArgs>("avg_pool2d").everywhere<AvgPoolKernel, kFloatingTypes>();
constexpr auto kAvgPoolGrad =
    KernelTable<AvgPoolGradArgs>("avg_pool2d_backward").everywhere<AvgPoolGradKernel, kFloatingTypes>();

struct AvgRule {
  bool count_include_pad = false;
  int64_t divisor_override = 0;
};

// The host's loops run over neighbouring channels. Row-major images of many channels are turned to
// channels-last and back, which costs a tenth of what single channels would. A GPU's threads are as fast on
// rows.
bool worth_turning(const Tensor& x) { return x.size(1) >= 8 && x.is_contiguous() && !x.device().is_cuda(); }
Tensor in_format(const Tensor& t, MemoryFormat format) {
  NoGradGuard no_grad;
  return t.contiguous(format);
}

// In the memory format that x has.
Tensor max_pool_grad(const Tensor& gy, const Tensor& positions, const Shape& x_sizes, const PoolShape& shape,
                     MemoryFormat format);

Tensor max_pool_pick(const Tensor& x, const Tensor& positions, const PoolShape& shape);

struct MaxPoolPickBackward : Node {
  MaxPoolPickBackward(const Shape& x, const PoolShape& s) : x_sizes(x), shape(s) {}
  const char* name() const override { return "MaxPool2DPickBackward"; }
  TensorList backward(const TensorList& g) override {
    return {max_pool_grad(g[0], saved(0), x_sizes, shape, saved(0).suggest_memory_format())};
  }
  Shape x_sizes;
  PoolShape shape;
};

struct MaxPoolGradBackward : Node {
  explicit MaxPoolGradBackward(const PoolShape& s) : shape(s) {}
  const char* name() const override { return "MaxPool2DBackwardBackward"; }
  TensorList backward(const TensorList& g) override { return {max_pool_pick(g[0], saved(0), shape)}; }
  PoolShape shape;
};

Tensor max_pool_pick(const Tensor& x, const Tensor& positions, const PoolShape& shape) {
  Tensor y = empty_like(positions, x.dtype());
  if (y.numel() > 0)
    launch(kMaxPoolPick, x.dtype(), ops::stream_of(x),
           MaxPoolPickArgs{x.arg(), positions.arg(), y.arg(), shape});
  if (wants_grad(x)) record<MaxPoolPickBackward>(y, x, x.sizes(), shape).save(positions);
  return y;
}

Tensor max_pool_grad(const Tensor& gy, const Tensor& positions, const Shape& x_sizes, const PoolShape& shape,
                     MemoryFormat format) {
  const Tensor g = in_format(gy, positions.suggest_memory_format());
  Tensor gx = empty_image(x_sizes, positions, g.dtype());
  if (gx.numel() > 0)
    launch(kMaxPoolGrad, g.dtype(), ops::stream_of(g),
           MaxPoolGradArgs{g.arg(), positions.arg(), gx.arg(), shape});
  gx = in_format(gx, format);
  if (wants_grad(gy)) record<MaxPoolGradBackward>(gx, gy, shape).save(positions);
  return gx;
}

struct MaxPoolBackward : Node {
  MaxPoolBackward(const Tensor& x, const PoolShape& s)
      : x_sizes(x.sizes()), shape(s), format(x.suggest_memory_format()) {}
  const char* name() const override { return "MaxPool2DBackward"; }
  TensorList backward(const TensorList& g) override {
    return {max_pool_grad(g[0], saved(0), x_sizes, shape, format)};
  }
  Shape x_sizes;
  PoolShape shape;
  MemoryFormat format;
};

// The largest elements, in the input's memory format, and their positions in the windows.
std::pair<Tensor, Tensor> max_pool(const Tensor& input, const PoolShape& shape, int64_t oh, int64_t ow) {
  const Tensor given = dense_image(input);
  const Tensor x = worth_turning(given) ? in_format(given, MemoryFormat::channels_last) : given;
  const Shape sizes = {x.size(0), x.size(1), oh, ow};
  const bool small = shape.kernel[0] * shape.kernel[1] <= 256;
  Tensor y = empty_image(sizes, x, x.dtype()), positions = empty_image(sizes, x, small ? kUInt8 : kInt32);
  if (y.numel() > 0)
    launch(kMaxPool, x.dtype(), ops::stream_of(x), MaxPoolArgs{x.arg(), y.arg(), positions.arg(), shape});
  y = in_format(y, given.suggest_memory_format());
  if (wants_grad(input)) record<MaxPoolBackward>(y, input, given, shape).save(positions);
  return {y, positions};
}

Tensor avg_pool(const Tensor& input, const PoolShape& shape, int64_t oh, int64_t ow, const AvgRule& rule);

Tensor avg_pool_grad(const Tensor& gy, const Shape& x_sizes, const PoolShape& shape, const AvgRule& rule);

struct AvgPoolGradBackward : Node {
  AvgPoolGradBackward(const Shape& y, const PoolShape& s, const AvgRule& r) : y_sizes(y), shape(s), rule(r) {}
  const char* name() const override { return "AvgPool2DBackwardBackward"; }
  TensorList backward(const TensorList& g) override {
    return {avg_pool(g[0], shape, y_sizes[2], y_sizes[3], rule)};
  }
  Shape y_sizes;
  PoolShape shape;
  AvgRule rule;
};

Tensor avg_pool_grad(const Tensor& gy, const Shape& x_sizes, const PoolShape& shape, const AvgRule& rule) {
  const Tensor g = dense_image(gy);
  Tensor gx = empty_image(x_sizes, g, g.dtype());
  if (gx.numel() > 0) {
    launch(kAvgPoolGrad, g.dtype(), ops::stream_of(g),
           AvgPoolGradArgs{g.arg(), gx.arg(), shape, rule.count_include_pad, rule.divisor_override});
  }
  if (wants_grad(gy)) record<AvgPoolGradBackward>(gx, gy, gy.sizes(), shape, rule);
  return gx;
}

struct AvgPoolBackward : Node {
  AvgPoolBackward(const Shape& x, const PoolShape& s, const AvgRule& r) : x_sizes(x), shape(s), rule(r) {}
  const char* name() const override { return "AvgPool2DBackward"; }
  TensorList backward(const TensorList& g) override { return {avg_pool_grad(g[0], x_sizes, shape, rule)}; }
  Shape x_sizes;
  PoolShape shape;
  AvgRule rule;
};

Tensor avg_pool(const Tensor& input, const PoolShape& shape, int64_t oh, int64_t ow, const AvgRule& rule) {
  const Tensor x = dense_image(input);
  Tensor y = empty_image({x.size(0), x.size(1), oh, ow}, x, x.dtype());
  if (y.numel() > 0) {
    launch(kAvgPool, x.dtype(), ops::stream_of(x),
           AvgPoolArgs{x.arg(), y.arg(), shape, rule.count_include_pad, rule.divisor_override});
  }
  if (wants_grad(input)) record<AvgPoolBackward>(y, input, x.sizes(), shape, rule);
  return y;
}

void check(const char* op, const Tensor& x) {
  ops::check_defined(op, x);
  GRADUS_CHECK(x.dim() == 3 || x.dim() == 4, "E-SHAPE", op,
               ": expected a 3-D or 4-D input (N, C, H, W), got shape ", x.sizes());
  GRADUS_CHECK(x.is_floating_point(), "E-DTYPE", op, ": expected a floating point input, got ",
               to_string(x.dtype()), hint("convert it with .to(kFloat32)"));
  GRADUS_CHECK(x.size(-3) > 0 && x.size(-2) > 0 && x.size(-1) > 0, "E-SHAPE", op,
               ": expected non-zero channels, height and width, got shape ", x.sizes());
}

// (C, H, W) runs as a batch of one.
template <class F>
Tensor as_batch(const Tensor& x, const F& f) {
  return x.dim() == 4 ? f(x) : f(x.unsqueeze(0)).squeeze(0);
}

PoolShape windowed(const char* op, Size2 kernel, Size2 stride, Size2 padding, Size2 dilation) {
  GRADUS_CHECK(padding.h <= kernel.h / 2 && padding.w <= kernel.w / 2 && padding.h >= 0 && padding.w >= 0,
               "E-ARG", op, ": padding ", padding,
               " should be at least 0 and at most half of the kernel size ", kernel);
  return {{{stride.h, stride.w}, {padding.h, padding.w}, {dilation.h, dilation.w}, 1},
          {kernel.h, kernel.w},
          false};
}

PoolShape adaptive(const char* op, const Tensor& x, Size2 out) {
  GRADUS_CHECK(out.h >= 0 && out.w >= 0, "E-ARG", op, ": output size ", out, " must not be negative");
  auto largest = [](int64_t size, int64_t outputs) {
    return outputs == 0 ? 1 : (size + outputs - 1) / outputs + 1;
  };
  return {{{1, 1}, {0, 0}, {1, 1}, 1}, {largest(x.size(-2), out.h), largest(x.size(-1), out.w)}, true};
}

struct MaxPoolPlan {
  PoolShape shape;
  int64_t oh, ow;
};
MaxPoolPlan plan_max_pool(const Tensor& x, Size2 kernel, const MaxPool2dOptions& o) {
  const Size2 stride = o.stride.value_or(kernel);
  return {
      windowed("max_pool2d", kernel, stride, o.padding, o.dilation),
      ops::window_count("max_pool2d", x.size(-2), kernel.h, stride.h, o.padding.h, o.dilation.h, o.ceil_mode),
      ops::window_count("max_pool2d", x.size(-1), kernel.w, stride.w, o.padding.w, o.dilation.w,
                        o.ceil_mode)};
}

}  // namespace

Tensor max_pool2d(const Tensor& input, Size2 kernel_size, const MaxPool2dOptions& options) {
  check("max_pool2d", input);
  const auto [shape, oh, ow] = plan_max_pool(input, kernel_size, options);
  return as_batch(input, [&, oh = oh, ow = ow, &shape = shape](const Tensor& x) {
    return max_pool(x, shape, oh, ow).first;
  });
}

std::pair<Tensor, Tensor> max_pool2d_with_indices(const Tensor& input, Size2 kernel_size,
                                                  const MaxPool2dOptions& options) {
  check("max_pool2d", input);
  const auto [shape, oh, ow] = plan_max_pool(input, kernel_size, options);
  const auto [y, positions] = max_pool(input.dim() == 4 ? input : input.unsqueeze(0), shape, oh, ow);
  Tensor indices = empty_like(positions, kInt64);
  if (indices.numel() > 0) {
    launch(kMaxPoolIndex, positions.dtype(), ops::stream_of(y),
           MaxPoolIndexArgs{positions.arg(), indices.arg(), input.size(-2), input.size(-1), shape});
  }
  if (input.dim() == 4) return {y, in_format(indices, y.suggest_memory_format())};
  return {y.squeeze(0), indices.squeeze(0)};
}

Tensor avg_pool2d(const Tensor& input, Size2 kernel_size, const AvgPool2dOptions& options) {
  check("avg_pool2d", input);
  GRADUS_CHECK(options.divisor_override.value_or(1) > 0, "E-ARG",
               "avg_pool2d: divisor_override must be positive, got ", options.divisor_override.value_or(1));
  const Size2 stride = options.stride.value_or(kernel_size);
  const PoolShape shape = windowed("avg_pool2d", kernel_size, stride, options.padding, 1);
  const int64_t oh = ops::window_count("avg_pool2d", input.size(-2), kernel_size.h, stride.h,
                                       options.padding.h, 1, options.ceil_mode);
  const int64_t ow = ops::window_count("avg_pool2d", input.size(-1), kernel_size.w, stride.w,
                                       options.padding.w, 1, options.ceil_mode);
  const AvgRule rule{options.count_include_pad, options.divisor_override.value_or(0)};
  return as_batch(input, [&, shape = shape](const Tensor& x) { return avg_pool(x, shape, oh, ow, rule); });
}

Tensor adaptive_avg_pool2d(const Tensor& input, Size2 output_size) {
  check("adaptive_avg_pool2d", input);
  const PoolShape shape = adaptive("adaptive_avg_pool2d", input, output_size);
  return as_batch(input,
                  [&](const Tensor& x) { return avg_pool(x, shape, output_size.h, output_size.w, {}); });
}

Tensor adaptive_max_pool2d(const Tensor& input, Size2 output_size) {
  check("adaptive_max_pool2d", input);
  const PoolShape shape = adaptive("adaptive_max_pool2d", input, output_size);
  return as_batch(input,
                  [&](const Tensor& x) { return max_pool(x, shape, output_size.h, output_size.w).first; });
}

}  // namespace gradus
