// Convolutions by cuDNN, with algorithms that give the same result on every run.
#include <gradus/backends/cuda/bias.h>
#include <gradus/backends/cuda/conv_plan.h>
#include <gradus/backends/cuda/stream.h>
#include <gradus/runtime/math_mode.h>

#include <algorithm>
#include <optional>

#include "kernels/reduce.cuh"

namespace gradus {
namespace cuda {
namespace {

constexpr uintptr_t kAlignment = 16;  // bytes: what kernels for tensor cores load at once

bool is_aligned(const TensorArg& t) { return reinterpret_cast<uintptr_t>(t.address) % kAlignment == 0; }

// An operand in the layout of a problem: itself, or a copy. Weights lie row-major in a model and are copied
// for NHWC at each call: they are small, and change with every step.
class Dense {
 public:
  Dense(const TensorArg& t, cudnnTensorFormat_t format, bool is_output, const Stream& stream)
      : original_(t), arg_(t), stream_(stream) {
    const Shape strides = strides_in(format, t.sizes);
    if (lies_as(t, strides) && is_aligned(t)) return;
    memory_.emplace(static_cast<size_t>(t.numel()) * element_size(t.dtype), stream);
    arg_.address = memory_->data();
    arg_.strides = strides;
    if (!is_output) kernels::copy_cuda({original_, arg_}, stream_);
  }
  const TensorArg& arg() const { return arg_; }
  /// Of an output, when it has been written.
  void store() const {
    if (memory_) kernels::copy_cuda({arg_, original_}, stream_);
  }

 private:
  TensorArg original_, arg_;
  Stream stream_;
  std::optional<Workspace> memory_;
};

TensorArg images(TensorArg t, int64_t first, int64_t count) {
  const int64_t image = t.numel() / t.sizes[0];
  t.address = t.data<char>() + first * image * static_cast<int64_t>(element_size(t.dtype));
  t.sizes[0] = count;
  return t;
}

struct Operands {
  TensorArg x, w, y, bias;
};

ConvProblem problem_of(ConvProduct product, cudnnTensorFormat_t format, const Operands& o,
                       const Window& window) {
  return conv_problem(product, format, o.x, o.w, o.y, window, o.bias.present(), backends::cudnn::allow_tf32);
}

// Any of the three products, none of whose operands is empty; a few images at a time where cuDNN cannot count
// the elements of all. The gradient of the weights then is the sum of theirs.
void convolve(ConvProduct product, const Operands& o, const Window& window, const Stream& stream) {
  handle_of(stream);  // makes the device current, which a first handle needs
  ConvDevice& device = ConvDevice::of(stream.device);
  const int64_t batch = o.x.sizes[0], step = images_at_once(o.x, o.y);
  cudnnTensorFormat_t format = conv_format(o.x, o.y);
  const TensorArg fused = is_aligned(o.bias) ? o.bias : TensorArg{};
  const Operands first{images(o.x, 0, step), o.w, images(o.y, 0, step), fused};
  if (format == CUDNN_TENSOR_NHWC && !device.can_run(problem_of(product, format, first, window)))
    format = CUDNN_TENSOR_NCHW;  // for which it has more
  const Dense x(o.x, format, product == ConvProduct::input, stream),
      w(o.w, format, product == ConvProduct::weight, stream),
      y(o.y, format, product == ConvProduct::forward, stream);
  for (int64_t i = 0; i < batch; i += step) {
    const int64_t n = std::min(step, batch - i);
    const Operands part{images(x.arg(), i, n), w.arg(), images(y.arg(), i, n), fused};
    const bool added_bias = device.run(problem_of(product, format, part, window),
                                       {part.x.address, part.w.address, part.y.address, part.bias.address},
                                       product == ConvProduct::weight && i > 0, stream);
    if (o.bias.present() && !added_bias) add_bias(part.y, o.bias, 1, stream);
  }
  (product == ConvProduct::forward ? y : product == ConvProduct::input ? x : w).store();
}

void sum_over_pixels(const TensorArg& gy, const TensorArg& gbias, const Stream& stream) {
  const ReduceArgs args{gy, along(gbias, 1, 4), gy.numel() / gy.sizes[1]};
  visit_dtype<kFloatingTypes>(
      gy.dtype, [&]<class T>(TypeTag<T>) { cuda_kernel<WideReduceKernel<reduction::Add>, T>(args, stream); });
}

}  // namespace
}  // namespace cuda

void conv_cuda(const ConvArgs& p, const Stream& stream) {
  if (p.y.numel() == 0) return;
  if (p.x.numel() == 0 || p.w.numel() == 0) return cuda::set_to_bias(p.y, p.bias, 1, stream);
  cuda::convolve(cuda::ConvProduct::forward, {p.x, p.w, p.y, p.bias}, p.window, stream);
}
void conv_grad_input_cuda(const ConvGradInputArgs& p, const Stream& stream) {
  if (p.gx.numel() == 0) return;
  if (p.gy.numel() == 0 || p.w.numel() == 0) return cuda::set_to_bias(p.gx, {}, 1, stream);
  cuda::convolve(cuda::ConvProduct::input, {p.gx, p.w, p.gy, {}}, p.window, stream);
}
void conv_grad_weight_cuda(const ConvGradWeightArgs& p, const Stream& stream) {
  if (p.gbias.present()) cuda::sum_over_pixels(p.gy, p.gbias, stream);
  if (p.gw.numel() == 0) return;
  if (p.gy.numel() == 0 || p.x.numel() == 0) return cuda::set_to_bias(p.gw, {}, 1, stream);
  cuda::convolve(cuda::ConvProduct::weight, {p.x, p.gw, p.gy, {}}, p.window, stream);
}

}  // namespace gradus
