// 2-D convolution.
#pragma once
#include <gradus/ops/window.h>
#include <gradus/tensor/tensor.h>

namespace gradus {

struct Conv2dOptions {
  Size2 stride = 1;
  Size2 padding = 0;
  Size2 dilation = 1;
  int64_t groups = 1;
};

/// Cross-correlation as torch.nn.functional.conv2d: input (N, C, H, W), weight (O, C / groups, KH, KW), bias
/// (O) or undefined; result (N, O, OH, OW) in the input's memory format. Floating point, one dtype (E-DTYPE),
/// one device. Sizes that do not fit throw E-SHAPE. Second derivatives are supported.
Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias = {},
              const Conv2dOptions& options = {});

/// The gradient of conv2d's input, given that of its output: torch.nn.grad.conv2d_input. Sizes that do not
/// belong to one convolution throw E-SHAPE, here and in conv2d_weight().
Tensor conv2d_input(const Shape& input_sizes, const Tensor& weight, const Tensor& grad_output,
                    const Conv2dOptions& options = {});
/// The gradient of conv2d's weight, given that of its output: torch.nn.grad.conv2d_weight.
Tensor conv2d_weight(const Tensor& input, const Shape& weight_sizes, const Tensor& grad_output,
                     const Conv2dOptions& options = {});

}  // namespace gradus
