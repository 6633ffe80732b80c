// Batch normalisation.
#pragma once
#include <gradus/tensor/tensor.h>

namespace gradus {

struct BatchNormOptions {
  bool training = false;
  double momentum = 0.1;  ///< weight of the new batch in the running statistics
  double eps = 1e-5;      ///< added to the variance
};

/// (x - mean) / sqrt(var + eps) * weight + bias per channel, as torch.nn.functional.batch_norm; x is (N, C,
/// …), floating point, the others (C) or undefined. In training the statistics are the batch's, and
/// running_mean and running_var (if defined) are updated in place, the latter with the unbiased variance;
/// else they are used. Training on one value per channel throws E-SHAPE and changes nothing; an empty batch
/// leaves the statistics alone. float16 and bfloat16 are normalised in float32. Any derivative
/// exists.
Tensor batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var,
                  const Tensor& weight = {}, const Tensor& bias = {}, const BatchNormOptions& options = {});

}  // namespace gradus
