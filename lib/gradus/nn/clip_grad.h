// Gradient clipping, as torch.nn.utils.
#pragma once
#include <gradus/tensor/tensor.h>

#include <vector>

namespace gradus::nn::utils {

/// Scales all gradients by min(1, max_norm / (norm + 1e-6)), where norm is that of all of them as one vector,
/// and returns norm (a scalar tensor on the first gradient's device; no synchronisation). norm_type may be
/// infinity. Parameters without a gradient are skipped. Throws E-ARG for a negative max_norm, and E-NONFINITE
/// with error_if_nonfinite if the norm is inf or NaN, before anything is scaled.
Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type = 2,
                       bool error_if_nonfinite = false);
/// Clamps every element of every gradient to [-clip_value, clip_value].
void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value);

}  // namespace gradus::nn::utils
