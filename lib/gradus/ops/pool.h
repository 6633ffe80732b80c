// 2-D pooling over (N, C, H, W) or (C, H, W), floating point; the result keeps the input's memory format.
#pragma once
#include <gradus/ops/window.h>
#include <gradus/tensor/tensor.h>

#include <optional>
#include <utility>

namespace gradus {

struct MaxPool2dOptions {
  std::optional<Size2> stride = {};  ///< the kernel size if not given
  Size2 padding = 0;                 ///< with -inf; at most half the kernel
  Size2 dilation = 1;
  bool ceil_mode = false;
};

/// The largest element of each window. NaN wins; the gradient goes to the last NaN, else to the first of
/// equals.
Tensor max_pool2d(const Tensor& input, Size2 kernel_size, const MaxPool2dOptions& options = {});
/// Also the place of each largest element: int64, row * W + column in its channel.
std::pair<Tensor, Tensor> max_pool2d_with_indices(const Tensor& input, Size2 kernel_size,
                                                  const MaxPool2dOptions& options = {});

struct AvgPool2dOptions {
  std::optional<Size2> stride = {};  ///< the kernel size if not given
  Size2 padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
  std::optional<int64_t> divisor_override = {};
};

/// The mean of each window; padding counts as zeros unless count_include_pad is false.
Tensor avg_pool2d(const Tensor& input, Size2 kernel_size, const AvgPool2dOptions& options = {});

/// Means of windows that divide the input into output_size parts as evenly as may be.
Tensor adaptive_avg_pool2d(const Tensor& input, Size2 output_size);
Tensor adaptive_max_pool2d(const Tensor& input, Size2 output_size);

}  // namespace gradus
