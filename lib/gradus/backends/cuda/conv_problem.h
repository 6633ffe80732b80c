// A convolution in cuDNN's words. Internal to cuda/. Why the older of its two interfaces: docs/adr/0007.
#pragma once
#include <gradus/backends/cuda/vendor_libraries.h>

#include <compare>

#include "kernels/conv.cuh"

namespace gradus::cuda {

/// Of the three products of a convolution, which.
enum class ConvProduct : uint8_t { forward, input, weight };

/// All that an algorithm is chosen by, and so the key under which it is kept.
struct ConvProblem {
  ConvProduct product;
  cudnnDataType_t type, compute;
  cudnnMathType_t math;
  cudnnTensorFormat_t format;  ///< of all four: images in NHWC and weights in OHWC, or NCHW and OIHW
  int x[4], w[4], y[4];        ///< (N, C, H, W), (O, C / groups, KH, KW), (N, O, OH, OW)
  int stride[2], padding[2], dilation[2], groups;
  bool has_bias;  ///< forward only
  auto operator<=>(const ConvProblem&) const = default;
};

/// The layout for a convolution of x to y: NHWC where both lie so, but for float64.
cudnnTensorFormat_t conv_format(const TensorArg& x, const TensorArg& y);

/// TF32 where `tf32` lets float32 use it. Throws E-SIZE for a size that is no int.
ConvProblem conv_problem(ConvProduct product, cudnnTensorFormat_t format, const TensorArg& x,
                         const TensorArg& w, const TensorArg& y, const Window& window, bool has_bias,
                         bool tf32);

/// True if `t` lies in memory as `strides` say; the stride of a single element can be anything.
bool lies_as(const TensorArg& t, const Shape& strides);
/// The strides of an operand of `sizes` in a problem of that format.
Shape strides_in(cudnnTensorFormat_t format, const Shape& sizes);

/// cuDNN's tensors have fewer than 2^31 elements. Tests make it less.
inline int64_t largest_numel = (int64_t{1} << 31) - 1;
/// How many images of a convolution therefore go into one call. Throws E-SIZE where one image has more.
int64_t images_at_once(const TensorArg& x, const TensorArg& y);

/// cuDNN's descriptors of a problem.
class ConvDescriptors {
 public:
  /// Throws E-CUDNN.
  ConvDescriptors(const Cudnn& library, const ConvProblem& problem, Device device);
  ~ConvDescriptors();
  ConvDescriptors(const ConvDescriptors&) = delete;
  ConvDescriptors& operator=(const ConvDescriptors&) = delete;

  cudnnTensorDescriptor_t x = nullptr, y = nullptr, bias = nullptr;
  cudnnFilterDescriptor_t w = nullptr;
  cudnnConvolutionDescriptor_t conv = nullptr;
  cudnnActivationDescriptor_t identity = nullptr;

 private:
  void release();
  const Cudnn& library_;
};

}  // namespace gradus::cuda
