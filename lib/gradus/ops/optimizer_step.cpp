#include <gradus/base/parallel.h>
#include <gradus/ops/common.h>
#include <gradus/ops/optimizer_step.h>

#include "kernels/optimizer.cuh"

namespace gradus {
namespace {

using kernels::AdamUpdate;
using kernels::SgdUpdate;

struct AdamArgs {
  TensorListArg params, grads, exp_avgs, exp_avg_sqs, steps;
  TensorArg lr;
  AdamStepOptions options;
  static constexpr auto operands =
      std::tuple{inout(&AdamArgs::params),      in(&AdamArgs::grads),    inout(&AdamArgs::exp_avgs),
                 inout(&AdamArgs::exp_avg_sqs), inout(&AdamArgs::steps), in(&AdamArgs::lr)};
};
struct SgdArgs {
  TensorListArg params, grads, buffers;
  TensorArg lr;
  SgdStepOptions options;
  static constexpr auto operands =
      std::tuple{inout(&SgdArgs::params), in(&SgdArgs::grads), inout(&SgdArgs::buffers), in(&SgdArgs::lr)};
};

constexpr int64_t kGrain = 16384;

struct AdamKernel {
  template <class T>
  static void run(const AdamArgs& a, const Stream&) {
    using C = ComputeType<T>;
    const auto& o = a.options;
    AdamUpdate<C> update{};
    update.lr = static_cast<C>(*a.lr.data<double>());
    update.beta1 = o.beta1, update.beta2 = o.beta2;
    update.eps = static_cast<C>(o.eps);
    update.weight_decay = static_cast<C>(o.weight_decay);
    update.decoupled_weight_decay = o.decoupled_weight_decay;
    for (int i = 0; i < a.params.count; ++i) {
      const float step = ++*a.steps[i].data<float>();
      apply(update.at_step(static_cast<double>(step)), a.params[i].numel(), a.params[i].data<T>(),
            a.grads[i].data<T>(), a.exp_avgs[i].data<T>(), a.exp_avg_sqs[i].data<T>());
    }
  }
  template <class T, class Update>
  static void apply(const Update& update, int64_t n, T* param, const T* grad, T* exp_avg, T* exp_avg_sq) {
    using C = ComputeType<T>;
    parallel_for(0, n, kGrain, [&](int64_t begin, int64_t end) {
      const Update u = update;  // a copy: the compiler need not fear that the stores change it
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) {
        C p = static_cast<C>(param[i]), m = static_cast<C>(exp_avg[i]), v = static_cast<C>(exp_avg_sq[i]);
        u(p, static_cast<C>(grad[i]), m, v);
        param[i] = static_cast<T>(p), exp_avg[i] = static_cast<T>(m), exp_avg_sq[i] = static_cast<T>(v);
      }
    });
  }
};

struct SgdKernel {
  template <class T>
  static void run(const SgdArgs& a, const Stream&) {
    using C = ComputeType<T>;
    const auto& o = a.options;
    const SgdUpdate<C> update{.lr = static_cast<C>(*a.lr.data<double>()),
                              .momentum = static_cast<C>(o.momentum),
                              .dampening = static_cast<C>(o.dampening),
                              .weight_decay = static_cast<C>(o.weight_decay),
                              .nesterov = o.nesterov,
                              .first_step = o.first_step};
    for (int i = 0; i < a.params.count; ++i) {
      T* param = a.params[i].data<T>();
      const T* grad = a.grads[i].data<T>();
      T* buffer = o.momentum != 0 ? a.buffers[i].data<T>() : nullptr;
      apply(update, a.params[i].numel(), param, grad, buffer);
    }
  }
  template <class T, class Update>
  static void apply(const Update& update, int64_t n, T* param, const T* grad, T* buffer) {
    using C = ComputeType<T>;
    parallel_for(0, n, kGrain, [&](int64_t begin, int64_t end) {
      Update u = update;
      if (!buffer) {
        u.momentum = 0;
#pragma omp simd
        for (int64_t i = begin; i < end; ++i) {
          C p = static_cast<C>(param[i]), none = 0;
          u(p, static_cast<C>(grad[i]), none);
          param[i] = static_cast<T>(p);
        }
        return;
      }
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) {
        C p = static_cast<C>(param[i]), b = static_cast<C>(buffer[i]);
        u(p, static_cast<C>(grad[i]), b);
        param[i] = static_cast<T>(p), buffer[i] = static_cast<T>(b);
      }
    });
  }
};

constexpr auto kAdam = KernelTable<AdamArgs>("fused_adam_").host<AdamKernel, kFloatingTypes>();
constexpr auto kSgd = KernelTable<SgdArgs>("fused_sgd_").host<SgdKernel, kFloatingTypes>();

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
  args.options = options;
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
  args.options = options;
  args.buffers.count = 0;
  in_batches(kSgd, slots, args, [&](const SgdSlot& s, int i) {
    if (!s.momentum_buffer.defined()) return;
    check_state("fused_sgd_", s.param, "momentum_buffer", s.momentum_buffer);
    add_to(args.buffers, i, s.momentum_buffer);
  });
}

}  // namespace gradus
