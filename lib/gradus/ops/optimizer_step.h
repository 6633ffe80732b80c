// The optimizers' arithmetic: one pass over parameter, gradient and state for a whole group of tensors, as
// torch._fused_adam_. Users call gradus::optim.
#pragma once
#include <gradus/tensor/tensor.h>

#include <vector>

namespace gradus {

/// Tensors of one parameter. All dense, of one layout, dtype and device; `step` is a float32 scalar.
struct AdamSlot {
  Tensor param, grad, exp_avg, exp_avg_sq, step;
};
struct AdamStepOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled_weight_decay = false;
};
/// Adds 1 to each `step` and applies Adam's update (AdamW's with decoupled_weight_decay) in place. lr: a
/// float64 scalar on the same device, so that a recorded step follows a schedule.
void fused_adam_(const std::vector<AdamSlot>& slots, const Tensor& lr, const AdamStepOptions& options);

/// momentum_buffer is undefined where momentum is 0; `first_step` says that it starts as the gradient.
struct SgdSlot {
  Tensor param, grad, momentum_buffer;
};
struct SgdStepOptions {
  double momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false, first_step = false;
};
/// Applies SGD's update in place; lr as in fused_adam_().
void fused_sgd_(const std::vector<SgdSlot>& slots, const Tensor& lr, const SgdStepOptions& options);

}  // namespace gradus
