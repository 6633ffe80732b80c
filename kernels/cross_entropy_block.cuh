// Cross entropy of logits and class indices, log_softmax and nll_loss in one pass; a block for each sample.
//
// The loss of a sample of class t, with p = softmax(logits), class weights w and label smoothing e over K
// classes:
//   (1 - e) w[t] (-log p[t]) + e / K sum_k w[k] (-log p[k])
// A sample whose target is ignore_index has loss 0 and weight 0. Targets are checked by the host before; a
// kernel that meets one out of range writes NaN for its sample.
#pragma once
#include <gradus/base/math.h>

#include <kernels/blocks/launch.cuh>
#include <kernels/blocks/reduce.cuh>
#include <kernels/blocks/rows.cuh>

namespace gradus::kernels {

/// What forward and backward share. Logits are contiguous [outer, classes, inner]; `samples` are their rows.
template <class T>
struct CrossEntropyTask {
  using C = ComputeType<T>;
  const T* logits;
  const int64_t* target;  // [samples]
  const C* weight;        // [classes] or null: all 1
  Rows samples;
  double label_smoothing;
  int64_t ignore_index;

  GRADUS_HD C class_weight(int64_t k) const { return weight != nullptr ? weight[k] : C{1}; }
  GRADUS_HD C logit(Row row, int64_t k) const { return static_cast<C>(logits[row.at(k)]); }
  GRADUS_HD bool in_range(int64_t t) const { return t >= 0 && t < samples.length; }
};

/// -log p of a logit, from its row's maximum and log(sum(exp(x - max))).
template <class C>
struct NegativeLogSoftmax {
  C max, log_sum;
  GRADUS_HD C operator()(C x) const { return log_sum - (x - max); }
};

/// loss[s], sample_weight[s] = w[t] (what a mean divides by) and, kept for the gradient, stats[s], the row's
/// maximum m, and stats[samples + s], log(sum(exp(x - m))). The two stay apart: their sum would lose log 2
/// beside 1e8.
template <class T>
struct CrossEntropyForward {
  static constexpr const char* kName = "cross_entropy";
  using C = ComputeType<T>;
  CrossEntropyTask<T> task;
  C* loss;
  C* sample_weight;
  C* stats;

  static constexpr bool supports(int block_size) { return whole_warps(block_size); }
  int64_t groups(int) const { return task.samples.count; }
  size_t shared_bytes(int block_size) const { return shared_size<C>(reduce_slots(block_size)); }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    C* scratch = block.template shared<C>(reduce_slots(block.size()));
    const int64_t sample = block.group_index(), classes = task.samples.length;
    const Row row = task.samples.row(sample);
    C m = -std::numeric_limits<C>::infinity();
    for (int64_t k = block.thread_rank(); k < classes; k += block.size()) m = Max{}(task.logit(row, k), m);
    m = block_reduce(block, m, Max{}, scratch);
    C s = 0;
    for (int64_t k = block.thread_rank(); k < classes; k += block.size())
      s += math::exp(task.logit(row, k) - m);
    const NegativeLogSoftmax<C> nll{m, math::log(block_reduce(block, s, Sum{}, scratch))};
    C smooth = 0;
    if (task.label_smoothing > 0) {
      for (int64_t k = block.thread_rank(); k < classes; k += block.size())
        smooth += task.class_weight(k) * nll(task.logit(row, k));
      smooth = block_reduce(block, smooth, Sum{}, scratch);
    }
    if (block.thread_rank() == 0) finish(sample, row, nll, smooth);
  }

 private:
  GRADUS_HD void finish(int64_t sample, Row row, NegativeLogSoftmax<C> nll, C smooth) const {
    const int64_t t = task.target[sample];
    const bool ignored = t == task.ignore_index;
    stats[sample] = nll.max;
    stats[task.samples.count + sample] = nll.log_sum;
    sample_weight[sample] = !ignored && task.in_range(t) ? task.class_weight(t) : C{0};
    if (ignored) {
      loss[sample] = 0;
    } else if (!task.in_range(t)) {
      loss[sample] = std::numeric_limits<C>::quiet_NaN();
    } else {
      const C e = static_cast<C>(task.label_smoothing);
      const C hard = task.class_weight(t) * nll(task.logit(row, t));
      loss[sample] = e > 0 ? (C{1} - e) * hard + e / static_cast<C>(task.samples.length) * smooth : hard;
    }
  }
};

/// result = sum(loss), or with Mean sum(loss) / sum(sample_weight), and total_weight = sum(sample_weight), in
/// one block. The mean of no samples is NaN, as in PyTorch.
template <class T>
struct CrossEntropyReduce {
  static constexpr const char* kName = "cross_entropy_reduce";
  using C = ComputeType<T>;
  const C* loss;
  const C* sample_weight;
  T* result;
  C* total_weight;
  int64_t samples;
  bool mean;

  static constexpr bool supports(int block_size) { return whole_warps(block_size); }
  int64_t groups(int) const { return 1; }
  size_t shared_bytes(int block_size) const { return shared_size<C>(reduce_slots(block_size)); }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    C* scratch = block.template shared<C>(reduce_slots(block.size()));
    C sum = 0, weight = 0;
    for (int64_t i = block.thread_rank(); i < samples; i += block.size()) {
      sum += loss[i];
      weight += sample_weight[i];
    }
    sum = block_reduce(block, sum, Sum{}, scratch);
    weight = block_reduce(block, weight, Sum{}, scratch);
    if (block.thread_rank() != 0) return;
    *total_weight = weight;
    *result = static_cast<T>(mean ? sum / weight : sum);
  }
};

/// dlogits[k] = g ((1 - e) w[t] (p[k] - [k = t]) + e / K (p[k] sum(w) - w[k])), where g is the gradient of
/// the sample's loss: dloss[sample * dloss_step] (step 0: one for all), divided by *divisor if that is given
/// (a mean's total weight).
template <class T>
struct CrossEntropyBackward {
  static constexpr const char* kName = "cross_entropy_backward";
  using C = ComputeType<T>;
  CrossEntropyTask<T> task;
  const C* stats;  // from the forward pass
  const T* dloss;
  int64_t dloss_step;
  const C* divisor;
  T* dlogits;

  static constexpr bool supports(int block_size) { return whole_warps(block_size); }
  int64_t groups(int) const { return task.samples.count; }
  size_t shared_bytes(int block_size) const { return shared_size<C>(reduce_slots(block_size)); }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    C* scratch = block.template shared<C>(reduce_slots(block.size()));
    const int64_t sample = block.group_index(), classes = task.samples.length;
    const Row row = task.samples.row(sample);
    C all_weights = 0;
    if (task.label_smoothing > 0) {
      for (int64_t k = block.thread_rank(); k < classes; k += block.size())
        all_weights += task.class_weight(k);
      all_weights = block_reduce(block, all_weights, Sum{}, scratch);
    }
    const int64_t t = task.target[sample];
    const C g = sample_gradient(sample, t);
    const C e = static_cast<C>(task.label_smoothing), share = e / static_cast<C>(classes);
    const C hard = task.in_range(t) ? (C{1} - e) * task.class_weight(t) : C{0};
    const NegativeLogSoftmax<C> nll{stats[sample], stats[task.samples.count + sample]};
    for (int64_t k = block.thread_rank(); k < classes; k += block.size()) {
      const C p = math::exp(-nll(task.logit(row, k)));
      C d = hard * (p - (k == t ? C{1} : C{0}));
      if (e > 0) d += share * (p * all_weights - task.class_weight(k));
      dlogits[row.at(k)] = static_cast<T>(t == task.ignore_index ? C{0} : g * d);
    }
  }

 private:
  GRADUS_HD C sample_gradient(int64_t sample, int64_t t) const {
    if (!task.in_range(t)) return std::numeric_limits<C>::quiet_NaN();
    const C g = static_cast<C>(dloss[sample * dloss_step]);
    return divisor != nullptr ? g / *divisor : g;
  }
};

}  // namespace gradus::kernels

GRADUS_KERNEL_FLOATING(gradus::kernels::CrossEntropyForward);
GRADUS_KERNEL_FLOATING(gradus::kernels::CrossEntropyReduce);
GRADUS_KERNEL_FLOATING(gradus::kernels::CrossEntropyBackward);
