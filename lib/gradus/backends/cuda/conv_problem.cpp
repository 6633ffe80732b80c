#include <gradus/backends/cuda/conv_problem.h>
#include <gradus/base/error.h>

#include <algorithm>
#include <limits>

namespace gradus::cuda {
namespace {

cudnnDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return CUDNN_DATA_HALF;
    case DType::bfloat16:
      return CUDNN_DATA_BFLOAT16;
    case DType::float64:
      return CUDNN_DATA_DOUBLE;
    default:
      return CUDNN_DATA_FLOAT;
  }
}

// The half types multiply on tensor cores, in pairs whose sum is a float32. CUDNN_DEFAULT_MATH lets float32
// use them too, as TF32.
cudnnMathType_t math_of(DType dtype, bool tf32) {
  if (dtype == DType::float16 || dtype == DType::bfloat16) return CUDNN_TENSOR_OP_MATH;
  return dtype == DType::float32 && !tf32 ? CUDNN_FMA_MATH : CUDNN_DEFAULT_MATH;
}

int to_int(int64_t value) {
  GRADUS_CHECK(value <= std::numeric_limits<int>::max(), "E-SIZE", "conv2d: cuDNN counts in 32 bits, and ",
               value, " is more than they hold");
  return static_cast<int>(value);
}

void set_sizes(int (&out)[4], const Shape& sizes) {
  for (int d = 0; d < 4; ++d) out[d] = to_int(sizes[d]);
}

}  // namespace

Shape strides_in(cudnnTensorFormat_t format, const Shape& sizes) {
  return format == CUDNN_TENSOR_NHWC ? channels_last_strides(sizes) : contiguous_strides(sizes);
}

bool lies_as(const TensorArg& t, const Shape& strides) {
  for (int d = 0; d < t.dim(); ++d)
    if (t.sizes[d] != 1 && t.strides[d] != strides[d]) return false;
  return true;
}

cudnnTensorFormat_t conv_format(const TensorArg& x, const TensorArg& y) {
  if (x.dtype == DType::float64) return CUDNN_TENSOR_NCHW;  // cuDNN has no other for it
  const auto channels_last = [](const TensorArg& t) { return lies_as(t, channels_last_strides(t.sizes)); };
  const auto row_major = [](const TensorArg& t) { return lies_as(t, contiguous_strides(t.sizes)); };
  // One channel, or one pixel, is both; then the other image decides.
  const bool nhwc = channels_last(x) && channels_last(y) && !(row_major(x) && row_major(y));
  return nhwc ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
}

ConvProblem conv_problem(ConvProduct product, cudnnTensorFormat_t format, const TensorArg& x,
                         const TensorArg& w, const TensorArg& y, const Window& window, bool has_bias,
                         bool tf32) {
  ConvProblem p{};
  p.product = product;
  p.type = type_of(x.dtype);
  p.compute = x.dtype == DType::float64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  p.math = math_of(x.dtype, tf32);
  p.format = format;
  set_sizes(p.x, x.sizes);
  set_sizes(p.w, w.sizes);
  set_sizes(p.y, y.sizes);
  for (int i = 0; i < 2; ++i) {
    p.stride[i] = to_int(window.stride[i]);
    p.padding[i] = to_int(window.padding[i]);
    p.dilation[i] = to_int(window.dilation[i]);
  }
  p.groups = to_int(window.groups);
  p.has_bias = has_bias;
  return p;
}

int64_t images_at_once(const TensorArg& x, const TensorArg& y) {
  const int64_t batch = x.sizes[0];
  const int64_t image = std::max(x.numel(), y.numel()) / batch;
  GRADUS_CHECK(image <= largest_numel, "E-SIZE", "conv2d: an image of shape ", x.sizes,
               ", or its result of shape ", y.sizes, ", has more than ", largest_numel,
               " elements, which is all that cuDNN takes", hint("cut the image into tiles"));
  const int64_t most = largest_numel / image;
  constexpr int64_t kRound = 16;  // keeps the addresses of the parts aligned
  return most >= batch ? batch : most > kRound ? most / kRound * kRound : most;
}

ConvDescriptors::ConvDescriptors(const Cudnn& dnn, const ConvProblem& p, Device device) : library_(dnn) {
  const auto ok = [&](cudnnStatus_t status, const char* call) { check(dnn, status, call, device); };
  const auto set_tensor = [&](cudnnTensorDescriptor_t& t, int n, int c, int h, int w) {
    ok(dnn.cudnnCreateTensorDescriptor(&t), "cudnnCreateTensorDescriptor");
    ok(dnn.cudnnSetTensor4dDescriptor(t, p.format, p.type, n, c, h, w), "cudnnSetTensor4dDescriptor");
  };
  try {
    set_tensor(x, p.x[0], p.x[1], p.x[2], p.x[3]);
    set_tensor(y, p.y[0], p.y[1], p.y[2], p.y[3]);
    ok(dnn.cudnnCreateFilterDescriptor(&w), "cudnnCreateFilterDescriptor");
    ok(dnn.cudnnSetFilter4dDescriptor(w, p.type, p.format, p.w[0], p.w[1], p.w[2], p.w[3]),
       "cudnnSetFilter4dDescriptor");
    ok(dnn.cudnnCreateConvolutionDescriptor(&conv), "cudnnCreateConvolutionDescriptor");
    ok(dnn.cudnnSetConvolution2dDescriptor(conv, p.padding[0], p.padding[1], p.stride[0], p.stride[1],
                                           p.dilation[0], p.dilation[1], CUDNN_CROSS_CORRELATION, p.compute),
       "cudnnSetConvolution2dDescriptor");
    ok(dnn.cudnnSetConvolutionGroupCount(conv, p.groups), "cudnnSetConvolutionGroupCount");
    ok(dnn.cudnnSetConvolutionMathType(conv, p.math), "cudnnSetConvolutionMathType");
    if (!p.has_bias) return;
    set_tensor(bias, 1, p.w[0], 1, 1);
    ok(dnn.cudnnCreateActivationDescriptor(&identity), "cudnnCreateActivationDescriptor");
    ok(dnn.cudnnSetActivationDescriptor(identity, CUDNN_ACTIVATION_IDENTITY, CUDNN_PROPAGATE_NAN, 0),
       "cudnnSetActivationDescriptor");
  } catch (...) {
    release();
    throw;
  }
}

ConvDescriptors::~ConvDescriptors() { release(); }

void ConvDescriptors::release() {
  for (const cudnnTensorDescriptor_t t : {x, y, bias})
    if (t) library_.cudnnDestroyTensorDescriptor(t);
  if (w) library_.cudnnDestroyFilterDescriptor(w);
  if (conv) library_.cudnnDestroyConvolutionDescriptor(conv);
  if (identity) library_.cudnnDestroyActivationDescriptor(identity);
}

}  // namespace gradus::cuda
