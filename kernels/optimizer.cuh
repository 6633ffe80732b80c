// One element's step of SGD and of Adam, fused: parameter, gradient and state are read and written once.
#pragma once
#include <gradus/base/math.h>

#include <cmath>
#include <kernels/blocks/launch.cuh>

namespace gradus::kernels {

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

/// A step of SGD on n elements; `buffer` may be null if momentum is 0. A thread for each element.
/// lr, if not null, is read from the device in place of update.lr, so that a replayed step follows a
/// schedule.
template <class T>
struct SgdStep {
  static constexpr const char* kName = "sgd";
  using C = ComputeType<T>;
  T* param;
  const T* grad;
  T* buffer;
  int64_t n;
  SgdUpdate<C> update;
  const C* lr;

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int block_size) const { return blocks_for(n, block_size); }
  size_t shared_bytes(int) const { return 0; }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    const int64_t i = element(block);
    if (i >= n) return;
    SgdUpdate<C> now = update;
    if (lr != nullptr) now.lr = *lr;
    C p = static_cast<C>(param[i]), b = buffer != nullptr ? static_cast<C>(buffer[i]) : C{0};
    now(p, static_cast<C>(grad[i]), b);
    param[i] = static_cast<T>(p);
    if (buffer != nullptr) buffer[i] = static_cast<T>(b);
  }
};

/// A step of Adam or AdamW on n elements. A thread for each element.
/// lr (may be null: update.lr) and step (the number of this step, from 1) live on the device, for replay.
template <class T>
struct AdamStep {
  static constexpr const char* kName = "adam";
  using C = ComputeType<T>;
  T* param;
  const T* grad;
  T* exp_avg;
  T* exp_avg_sq;
  int64_t n;
  AdamUpdate<C> update;
  const C* lr;
  const C* step;

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int block_size) const { return blocks_for(n, block_size); }
  size_t shared_bytes(int) const { return shared_size<AdamUpdate<C>>(1); }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    auto* now = block.template shared<AdamUpdate<C>>(1);
    if (block.thread_rank() == 0) {  // the powers of beta are dear: once a block
      *now = update.at_step(static_cast<double>(*step));
      if (lr != nullptr) now->lr = *lr;
    }
    block.sync();
    const int64_t i = element(block);
    if (i >= n) return;
    C p = static_cast<C>(param[i]), m = static_cast<C>(exp_avg[i]), v = static_cast<C>(exp_avg_sq[i]);
    (*now)(p, static_cast<C>(grad[i]), m, v);
    param[i] = static_cast<T>(p);
    exp_avg[i] = static_cast<T>(m);
    exp_avg_sq[i] = static_cast<T>(v);
  }
};

}  // namespace gradus::kernels

GRADUS_KERNEL_FLOATING(gradus::kernels::SgdStep);
GRADUS_KERNEL_FLOATING(gradus::kernels::AdamStep);
