#pragma once
#include <gradus/tensor/tensor.h>

namespace gradus {

/// In training, 0 with probability p, else x / (1 - p), so that the mean stays; otherwise x itself. The
/// numbers come from default_generator() and belong to the logical elements: one seed drops the same elements
/// on every device and in every layout. The backward pass draws them again, so no mask is stored.
/// Throws E-ARG unless 0 <= p <= 1, E-DTYPE unless x is floating.
Tensor dropout(const Tensor& x, double p = 0.5, bool training = true);

}  // namespace gradus
