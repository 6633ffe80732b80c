// Losses as objects: criterion(output, target). Formulas, shapes and errors are those of the functions in
// gradus/ops/loss.h. They hold options only; a weight among them has to be on the device of the inputs.
#pragma once
#include <gradus/ops/loss.h>

namespace gradus::nn {

/// nn::CrossEntropyLoss({.label_smoothing = 0.1})
template <class Options, auto function>
class Loss {
 public:
  explicit Loss(const Options& options = {}) : options_(options) {}
  Tensor operator()(const Tensor& input, const Tensor& target) const {
    return function(input, target, options_);
  }

 private:
  Options options_;
};

/// nn::MSELoss(Reduction::sum)
template <auto function>
class ReducedLoss {
 public:
  explicit ReducedLoss(Reduction reduction = Reduction::mean) : reduction_(reduction) {}
  Tensor operator()(const Tensor& input, const Tensor& target) const {
    return function(input, target, reduction_);
  }

 private:
  Reduction reduction_;
};

using CrossEntropyLoss = Loss<CrossEntropyOptions, &cross_entropy>;
using NLLLoss = Loss<NllLossOptions, &nll_loss>;
using BCELoss = Loss<BinaryCrossEntropyOptions, &binary_cross_entropy>;
using BCEWithLogitsLoss = Loss<BinaryCrossEntropyOptions, &binary_cross_entropy_with_logits>;
using HuberLoss = Loss<HuberLossOptions, &huber_loss>;
using SmoothL1Loss = Loss<SmoothL1LossOptions, &smooth_l1_loss>;
using MSELoss = ReducedLoss<&mse_loss>;
using L1Loss = ReducedLoss<&l1_loss>;

}  // namespace gradus::nn
