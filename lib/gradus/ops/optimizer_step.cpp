#include <gradus/ops/common.h>
#include <gradus/ops/optimizer_step.h>

#include "kernels/optimizer.cuh"

namespace gradus {
namespace {

constexpr auto kAdam = KernelTable<AdamArgs>("fused_adam_").everywhere<AdamKernel, kFloatingTypes>();
constexpr auto kSgd = KernelTable<SgdArgs>("fused_sgd_").everywhere<SgdKernel, kFloatingTypes>();

// A gradient that somebody set by hand may lie otherwise in memory than its parameter.
Tensor laid_out_like(const Tensor& grad, const Tensor& param) {
  if (detail::has_strides(param.sizes(), grad.strides(), param.strides())) return grad;
  Tensor copy = empty_like(param);
  copy.copy_(grad);
  return copy;
}

void check(const char* op, const Tensor& param, const Tensor& grad) {
  GRADUS_CHECK(param.is_dense(), "E-LAYOUT", op, ": a parameter of shape ", param.sizes(), " with strides ",
               param.strides(), " has gaps in memory", hint("optimize a contiguous() copy"));
  ops::check_same_device(op, {{"param", param}, {"grad", grad}});
  GRADUS_CHECK(param.dtype() == grad.dtype(), "E-DTYPE", op, ": the parameter is ", to_string(param.dtype()),
               ", its gradient ", to_string(grad.dtype()));
}

void check_state(const char* op, const Tensor& param, const char* name, const Tensor& state) {
  ops::check_same_device(op, {{"param", param}, {name, state}});
  GRADUS_CHECK(state.dtype() == param.dtype() && state.sizes() == param.sizes() &&
                   detail::has_strides(param.sizes(), state.strides(), param.strides()),
               "E-STATE", op, ": ", name, " is ", to_string(state.dtype()), " of shape ", state.sizes(),
               ", its parameter is now ", to_string(param.dtype()), " of shape ", param.sizes(),
               hint("convert the model before its first step, or make a new optimizer"));
}

void add_to(TensorListArg& list, int i, const Tensor& t) {
  list.items[i] = t.arg();
  list.count = i + 1;
}

// Launches once for each run of slots that fits the operand lists and has one dtype and device.
template <class Args, class Slot, class Add>
void in_batches(const KernelTable<Args>& table, const std::vector<Slot>& slots, Args& args, const Add& add) {
  const Tensor* current = nullptr;
  std::vector<Tensor> copies;  // of gradients, until the launch has read them
  auto flush = [&] {
    if (args.params.count == 0) return;
    launch(table, current->dtype(), ops::stream_of(*current), args);
    args.params.count = 0;
    copies.clear();
  };
  for (const Slot& slot : slots) {
    check(table.name(), slot.param, slot.grad);
    const bool other =
        current && (current->dtype() != slot.param.dtype() || current->device() != slot.param.device());
    if (other || args.params.count == TensorListArg::kCapacity) flush();
    current = &slot.param;
    const Tensor grad = laid_out_like(slot.grad, slot.param);
    if (!grad.is_same(slot.grad)) copies.push_back(grad);
    add_to(args.grads, args.params.count, grad);
    add(slot, args.params.count);
    add_to(args.params, args.params.count, slot.param);
    slot.param.bump_version();
  }
  flush();
}

}  // namespace

void fused_adam_(const std::vector<AdamSlot>& slots, const Tensor& lr, const AdamStepOptions& options) {
  AdamArgs args;
  args.lr = lr.arg();
  args.beta1 = options.beta1, args.beta2 = options.beta2, args.eps = options.eps;
  args.weight_decay = options.weight_decay;
  args.decoupled_weight_decay = options.decoupled_weight_decay;
  in_batches(kAdam, slots, args, [&](const AdamSlot& s, int i) {
    check_state("fused_adam_", s.param, "exp_avg", s.exp_avg);
    check_state("fused_adam_", s.param, "exp_avg_sq", s.exp_avg_sq);
    add_to(args.exp_avgs, i, s.exp_avg);
    add_to(args.exp_avg_sqs, i, s.exp_avg_sq);
    add_to(args.steps, i, s.step);
  });
}

void fused_sgd_(const std::vector<SgdSlot>& slots, const Tensor& lr, const SgdStepOptions& options) {
  SgdArgs args;
  args.lr = lr.arg();
  args.momentum = options.momentum, args.dampening = options.dampening;
  args.weight_decay = options.weight_decay;
  args.nesterov = options.nesterov, args.first_step = options.first_step;
  args.buffers.count = 0;
  in_batches(kSgd, slots, args, [&](const SgdSlot& s, int i) {
    if (!s.momentum_buffer.defined()) return;
    check_state("fused_sgd_", s.param, "momentum_buffer", s.momentum_buffer);
    add_to(args.buffers, i, s.momentum_buffer);
  });
}

}  // namespace gradus
