// SGD's and Adam's step on one tensor, a thread for each element.
#pragma once
#include <kernels/blocks/launch.cuh>

#include "kernels/optimizer.cuh"

namespace gradus::kernels {

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
