// Losses. Names, options and formulas are PyTorch's. Floating inputs, computed in float32 for half types and
// rounded once.
#pragma once
#include <gradus/tensor/tensor.h>

namespace gradus {

/// What becomes of the losses of the elements: kept, averaged or summed.
enum class Reduction { none, mean, sum };

/// (input - target)^2. Different shapes broadcast, with a warning that names both. mean of no elements is
/// NaN.
Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean);
/// |input - target|; the gradient where they are equal is 0. Shapes as in mse_loss.
Tensor l1_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean);

struct HuberLossOptions {
  Reduction reduction = Reduction::mean;
  double delta = 1;
};
/// d^2 / 2 for d = |input - target| <= delta, else delta (d - delta / 2). Throws E-ARG unless delta > 0.
Tensor huber_loss(const Tensor& input, const Tensor& target, const HuberLossOptions& options = {});

struct SmoothL1LossOptions {
  Reduction reduction = Reduction::mean;
  double beta = 1;
};
/// d^2 / (2 beta) for d = |input - target| < beta, else d - beta / 2. Throws E-ARG unless beta >= 0.
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, const SmoothL1LossOptions& options = {});

struct BinaryCrossEntropyOptions {
  Tensor weight = {};      ///< of each element, broadcast to the input
  Tensor pos_weight = {};  ///< of the target 1, broadcast to the input (of logits only)
  Reduction reduction = Reduction::mean;
};
/// -(t log(s) + (1 - t) log(1 - s)) for s = sigmoid(input), without overflow. Shapes must be equal: E-SHAPE.
Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        const BinaryCrossEntropyOptions& options = {});
/// The same for s = input, a probability; logarithms are cut at -100.
Tensor binary_cross_entropy(const Tensor& input, const Tensor& target,
                            const BinaryCrossEntropyOptions& options = {});

struct CrossEntropyOptions {
  Tensor weight = {};           ///< of each class, shape (C)
  int64_t ignore_index = -100;  ///< samples of this class have no loss
  Reduction reduction = Reduction::mean;
  double label_smoothing = 0;
};
/// -log(softmax(input)[target]). input: (C), (N, C) or (N, C, d1, …); target: int64 class indices of shape
/// (), (N) or (N, d1, …), or probabilities of input's shape and dtype. With class weights a mean is weighted
/// by those of the targets; the mean of no samples is NaN, the sum 0. Throws E-TARGET for a class that is
/// neither in [0, C) nor ignore_index, before anything is written.
Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyOptions& options = {});

struct NllLossOptions {
  Tensor weight = {};
  int64_t ignore_index = -100;
  Reduction reduction = Reduction::mean;
};
/// -input[target]: cross_entropy of an input that went through log_softmax.
Tensor nll_loss(const Tensor& input, const Tensor& target, const NllLossOptions& options = {});

}  // namespace gradus
