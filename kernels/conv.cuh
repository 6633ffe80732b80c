// 2-D convolution: the operands of its three products, and the functions that run them on each device.
#pragma once
#include <gradus/runtime/stream.h>
#include <gradus/runtime/tensor_arg.h>

#include <tuple>

namespace gradus {

/// Step between windows, zeros added on each side, step inside a window; index 0 is height, 1 is width.
struct Window {
  int64_t stride[2], padding[2], dilation[2];
  int64_t groups = 1;
};

/// x (N, C, H, W), w (O, C / groups, KH, KW) of any strides, bias (O) or absent, y (N, O, OH, OW).
struct ConvArgs {
  TensorArg x, w, bias, y;
  Window window;
  static constexpr auto operands =
      std::tuple{in(&ConvArgs::x), in(&ConvArgs::w), in(&ConvArgs::bias), out(&ConvArgs::y)};
};
/// gx from gy and w; shapes as in ConvArgs.
struct ConvGradInputArgs {
  TensorArg gy, w, gx;
  Window window;
  static constexpr auto operands =
      std::tuple{in(&ConvGradInputArgs::gy), in(&ConvGradInputArgs::w), out(&ConvGradInputArgs::gx)};
};
/// gw, and gbias unless absent, from gy and x; shapes as in ConvArgs.
struct ConvGradWeightArgs {
  TensorArg gy, x, gw, gbias;
  Window window;
  static constexpr auto operands = std::tuple{in(&ConvGradWeightArgs::gy), in(&ConvGradWeightArgs::x),
                                              out(&ConvGradWeightArgs::gw), out(&ConvGradWeightArgs::gbias)};
};

/// oneDNN; plain loops for float64. backends/cpu/conv.cpp
void conv_cpu(const ConvArgs& args, const Stream& stream);
void conv_grad_input_cpu(const ConvGradInputArgs& args, const Stream& stream);
void conv_grad_weight_cpu(const ConvGradWeightArgs& args, const Stream& stream);
/// cuDNN. backends/cuda/conv.cpp
void conv_cuda(const ConvArgs& args, const Stream& stream);
void conv_grad_input_cuda(const ConvGradInputArgs& args, const Stream& stream);
void conv_grad_weight_cuda(const ConvGradWeightArgs& args, const Stream& stream);

}  // namespace gradus
