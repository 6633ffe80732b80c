// SGD's and Adam's step, fused: parameter, gradient and state are read and written once. A launch takes many
// tensors. Operands, one element's update (for every device), and the host loops.
#pragma once
#include <gradus/base/math.h>
#include <gradus/base/parallel.h>
#include <gradus/runtime/stream.h>
#include <gradus/runtime/tensor_arg.h>

#include <tuple>

namespace gradus {

/// Tensor i of each list belongs to parameter i; all of one dtype, but steps (float32 scalars) and lr (a
/// float64 scalar). Adds 1 to each step first.
struct AdamArgs {
  TensorListArg params, grads, exp_avgs, exp_avg_sqs, steps;
  TensorArg lr;
  double beta1, beta2, eps, weight_decay;
  bool decoupled_weight_decay;
  static constexpr auto operands =
      std::tuple{inout(&AdamArgs::params),      in(&AdamArgs::grads),    inout(&AdamArgs::exp_avgs),
                 inout(&AdamArgs::exp_avg_sqs), inout(&AdamArgs::steps), in(&AdamArgs::lr)};
};
/// `buffers` is read and written only if momentum is not 0; first_step: they then start as the gradients.
struct SgdArgs {
  TensorListArg params, grads, buffers;
  TensorArg lr;
  double momentum, dampening, weight_decay;
  bool nesterov, first_step;
  static constexpr auto operands =
      std::tuple{inout(&SgdArgs::params), in(&SgdArgs::grads), inout(&SgdArgs::buffers), in(&SgdArgs::lr)};
};

/// PyTorch's SGD. C: the compute type.
template <class C>
struct SgdUpdate {
  C lr, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false;
  bool first_step = false;  // the buffer then starts as the gradient, undampened

  /// `buffer` is read and written only if momentum is not 0.
  GRADUS_HD void operator()(C& param, C grad, C& buffer) const {
    grad += weight_decay * param;
    if (momentum != 0) {
      buffer = first_step ? grad : momentum * buffer + (C{1} - dampening) * grad;
      grad = nesterov ? grad + momentum * buffer : buffer;
    }
    param -= lr * grad;
  }
};

/// PyTorch's Adam and AdamW (decoupled_weight_decay).
template <class C>
struct AdamUpdate {
  C lr, eps, weight_decay = 0;
  bool decoupled_weight_decay = false;
  double beta1, beta2;  // 1 - 0.999f would be wrong by 1e-5 of itself
  // Set by at_step(): beta2, 1 - beta1, 1 - beta2 and the bias corrections.
  C keep2, add1, add2, bias_correction1, bias_correction2_sqrt;

  /// The update of step t = 1, 2, …
  GRADUS_HD AdamUpdate at_step(double t) const {
    AdamUpdate u = *this;
    u.keep2 = static_cast<C>(beta2);
    u.add1 = static_cast<C>(1.0 - beta1), u.add2 = static_cast<C>(1.0 - beta2);
    u.bias_correction1 = static_cast<C>(1.0 - math::pow(beta1, t));
    u.bias_correction2_sqrt = static_cast<C>(math::sqrt(1.0 - math::pow(beta2, t)));
    return u;
  }
  GRADUS_HD void operator()(C& param, C grad, C& exp_avg, C& exp_avg_sq) const {
    // Choices of numbers, not of paths: so the loop over a tensor vectorises.
    param *= decoupled_weight_decay ? C{1} - lr * weight_decay : C{1};
    grad += (decoupled_weight_decay ? C{0} : weight_decay) * param;
    exp_avg += add1 * (grad - exp_avg);
    exp_avg_sq = keep2 * exp_avg_sq + add2 * grad * grad;
    const C denominator = math::sqrt(exp_avg_sq) / bias_correction2_sqrt + eps;  // eps outside the root
    param -= lr / bias_correction1 * (exp_avg / denominator);
  }
};

namespace optimizer {
inline constexpr int64_t kGrain = 16384;  // elements a thread should have at least
}

struct AdamKernel {
  template <class T>
  static void run(const AdamArgs& a, const Stream&) {
    using C = ComputeType<T>;
    AdamUpdate<C> update{};
    update.lr = static_cast<C>(*a.lr.data<double>());
    update.beta1 = a.beta1, update.beta2 = a.beta2;
    update.eps = static_cast<C>(a.eps);
    update.weight_decay = static_cast<C>(a.weight_decay);
    update.decoupled_weight_decay = a.decoupled_weight_decay;
    for (int i = 0; i < a.params.count; ++i) {
      const float step = ++*a.steps[i].data<float>();
      apply(update.at_step(static_cast<double>(step)), a.params[i].numel(), a.params[i].data<T>(),
            a.grads[i].data<T>(), a.exp_avgs[i].data<T>(), a.exp_avg_sqs[i].data<T>());
    }
  }
  template <class T, class Update>
  static void apply(const Update& update, int64_t n, T* param, const T* grad, T* exp_avg, T* exp_avg_sq) {
    using C = ComputeType<T>;
    parallel_for(0, n, optimizer::kGrain, [&](int64_t begin, int64_t end) {
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
    const SgdUpdate<C> update{.lr = static_cast<C>(*a.lr.data<double>()),
                              .momentum = static_cast<C>(a.momentum),
                              .dampening = static_cast<C>(a.dampening),
                              .weight_decay = static_cast<C>(a.weight_decay),
                              .nesterov = a.nesterov,
                              .first_step = a.first_step};
    for (int i = 0; i < a.params.count; ++i) {
      T* param = a.params[i].data<T>();
      const T* grad = a.grads[i].data<T>();
      T* buffer = a.momentum != 0 ? a.buffers[i].data<T>() : nullptr;
      apply(update, a.params[i].numel(), param, grad, buffer);
    }
  }
  template <class T, class Update>
  static void apply(const Update& update, int64_t n, T* param, const T* grad, T* buffer) {
    using C = ComputeType<T>;
    parallel_for(0, n, optimizer::kGrain, [&](int64_t begin, int64_t end) {
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

}  // namespace gradus
