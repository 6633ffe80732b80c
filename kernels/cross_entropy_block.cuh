// Cross entropy of logits and class indices, log_softmax and nll_loss in one pass over the logits.
//
// The loss of a sample of class t, with p = softmax(logits), class weights w and label smoothing e over K
// classes:
//   (1 - e) w[t] (-log p[t]) + e / K sum_k w[k] (-log p[k])
// A sample whose target is ignore_index has loss 0 and weight 0.
#pragma once
#include <gradus/base/math.h>

#include <kernels/blocks/device_fault.cuh>
#include <kernels/blocks/launch.cuh>
#include <kernels/blocks/reduce.cuh>
#include <kernels/blocks/teams.cuh>

namespace gradus::kernels {

/// What the kernels share.
template <class T>
struct CrossEntropyTask {
  using C = ComputeType<T>;
  const T* logits;        // [samples, classes]; with log_probabilities these already
  const int64_t* target;  // [samples]
  const T* weight;        // [classes] or null: all 1
  int64_t samples, classes;
  double label_smoothing;
  int64_t ignore_index;
  bool log_probabilities;

  GRADUS_HD C class_weight(int64_t k) const { return weight != nullptr ? static_cast<C>(weight[k]) : C{1}; }
  GRADUS_HD bool is_class(int64_t t) const { return t >= 0 && t < classes; }
  GRADUS_HD bool counts(int64_t t) const { return t != ignore_index && is_class(t); }
};

/// A part of the losses, and of the weights that a mean divides by.
template <class C>
struct LossAndWeight {
  C loss, weight;
  GRADUS_HD LossAndWeight operator+(const LossAndWeight& o) const {
    return {loss + o.loss, weight + o.weight};
  }
};

/// losses[s], each[s] = the loss in T (each may be null) and, kept for the gradient, stats[s], the row's
/// maximum m, and stats[samples + s], log(sum(exp(x - m))). The two stay apart: their sum would lose log 2
/// beside 1e8.
template <class T>
struct CrossEntropyForward {
  static constexpr const char* kName = "cross_entropy";
  using C = ComputeType<T>;
  CrossEntropyTask<T> task;
  C* losses;
  T* each;
  C* stats;
  Teams teams;
  FaultSite fault;  // of a target that is no class

  static constexpr bool supports(int block_size) { return whole_warps(block_size); }
  int64_t groups(int block_size) const { return teams.groups(task.samples, block_size); }
  size_t shared_bytes(int block_size) const { return shared_size<C>(teams.slots(block_size)); }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    C* scratch = block.template shared<C>(teams.slots(block.size()));
    const TeamMember team = teams.member(block, block.group_index());
    const int64_t sample = team.row;
    const bool live = sample < task.samples;
    const int64_t t = live ? task.target[sample] : task.ignore_index;
    if (t != task.ignore_index && !task.is_class(t)) fault.report(t, task.classes, task.ignore_index, sample);
    const T* row = task.logits + sample * task.classes;
    const bool reads_row = !task.log_probabilities || task.label_smoothing > 0;
    const auto load = [&](int64_t k) { return static_cast<C>(row[k]); };
    with_elements<C>(team, task.classes, live && reads_row, load, [&](auto& logits, auto) {
      C m = 0, log_s = 0;
      if (!task.log_probabilities) {
        m = -std::numeric_limits<C>::infinity();
        logits.each([&](int64_t, C& v) { m = Max{}(v, m); });
        m = team.reduce(block, m, Max{}, scratch);
        C s = 0;
        logits.each([&](int64_t, C& v) { s += math::exp(v - m); });
        log_s = math::log(team.reduce(block, s, Sum{}, scratch));
      }
      C smooth = 0;
      if (task.label_smoothing > 0) {
        logits.each([&](int64_t k, C& v) { smooth += task.class_weight(k) * (log_s - (v - m)); });
        smooth = team.reduce(block, smooth, Sum{}, scratch);
      }
      if (!live || team.rank != 0) return;
      if (!task.log_probabilities) stats[sample] = m, stats[task.samples + sample] = log_s;
      C loss = 0;
      if (t != task.ignore_index) {
        loss = task.class_weight(t) * (log_s - (static_cast<C>(row[t]) - m));
        const C e = static_cast<C>(task.label_smoothing);
        if (e > 0) loss = (1 - e) * loss + e / static_cast<C>(task.classes) * smooth;
      }
      losses[sample] = loss;
      if (each != nullptr) each[sample] = static_cast<T>(loss);
    });
  }
};

/// *total = the sum of the losses, or with mean that / the sum of the weights, and *total_weight the latter;
/// total may be null. The mean of no samples is NaN, as in PyTorch. Of many samples, each block's part of the
/// sums goes to parts, and a second launch reads them as `from`.
template <class T>
struct CrossEntropyReduce {
  static constexpr const char* kName = "cross_entropy_reduce";
  using C = ComputeType<T>;
  CrossEntropyTask<T> task;
  const C* losses;
  const LossAndWeight<C>* from;  // or null: the samples
  LossAndWeight<C>* parts;       // or null: the results
  T* total;
  C* total_weight;
  int64_t count, part_length;  // samples, or elements of from
  bool mean;

  static constexpr bool supports(int block_size) { return whole_warps(block_size); }
  int64_t groups(int) const { return parts != nullptr ? (count + part_length - 1) / part_length : 1; }
  size_t shared_bytes(int block_size) const {
    return shared_size<LossAndWeight<C>>(reduce_slots(block_size));
  }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    auto* scratch = block.template shared<LossAndWeight<C>>(reduce_slots(block.size()));
    const int64_t begin = block.group_index() * part_length, next = begin + part_length;
    LossAndWeight<C> sum{0, 0};
    for (int64_t i = begin + block.thread_rank(); i < next && i < count; i += block.size())
      sum = sum + (from != nullptr ? from[i] : sample(i));
    sum = block_reduce(block, sum, Sum{}, scratch);
    if (block.thread_rank() != 0) return;
    if (parts != nullptr) {
      parts[block.group_index()] = sum;
      return;
    }
    *total_weight = sum.weight;
    if (total != nullptr) *total = static_cast<T>(mean ? sum.loss / sum.weight : sum.loss);
  }

 private:
  GRADUS_HD LossAndWeight<C> sample(int64_t i) const {
    const int64_t t = task.target[i];
    return {losses[i], task.counts(t) ? task.class_weight(t) : C{0}};
  }
};

/// d_logits[k] = g ((1 - e) w[t] (p[k] - [k = t]) + e / K (p[k] sum(w) - w[k])), without p for log
/// probabilities; g is the gradient of the sample's loss: dloss[sample * dloss_step] (step 0: one for all),
/// divided by *divisor if that is given (a mean's total weight).
template <class T>
struct CrossEntropyBackward {
  static constexpr const char* kName = "cross_entropy_backward";
  using C = ComputeType<T>;
  CrossEntropyTask<T> task;
  const C* stats;  // from the forward pass
  const T* dloss;
  int64_t dloss_step;
  const C* divisor;
  T* d_logits;
  Teams teams;

  static constexpr bool supports(int block_size) { return whole_warps(block_size); }
  int64_t groups(int block_size) const { return teams.groups(task.samples, block_size); }
  size_t shared_bytes(int block_size) const { return shared_size<C>(teams.slots(block_size)); }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    C* scratch = block.template shared<C>(teams.slots(block.size()));
    const TeamMember team = teams.member(block, block.group_index());
    C all_weights = static_cast<C>(task.classes);
    if (task.label_smoothing > 0 && task.weight != nullptr) {
      all_weights = 0;
      for (int64_t k = team.rank; k < task.classes; k += team.size) all_weights += task.class_weight(k);
      all_weights = team.reduce(block, all_weights, Sum{}, scratch);
    }
    if (team.row < task.samples) write_row(team, all_weights);
  }

 private:
  GRADUS_HD void write_row(const TeamMember& team, C all_weights) const {
    const int64_t sample = team.row, t = task.target[sample];
    const T* x = task.logits + sample * task.classes;
    T* d = d_logits + sample * task.classes;
    const bool counts = task.counts(t), has_p = counts && !task.log_probabilities;
    C g = static_cast<C>(dloss[sample * dloss_step]);
    if (divisor != nullptr) g /= *divisor;
    const C e = static_cast<C>(task.label_smoothing), share = g * e / static_cast<C>(task.classes);
    const C hard = counts ? g * (1 - e) * task.class_weight(t) : C{0}, of_p = hard + share * all_weights;
    const C m = has_p ? stats[sample] : C{0}, log_s = has_p ? stats[task.samples + sample] : C{0};
    for (int64_t k = team.rank; k < task.classes; k += team.size) {
      C slope = 0;
      if (has_p) {
        slope = of_p * math::exp((static_cast<C>(x[k]) - m) - log_s);
        if (share != 0) slope -= share * task.class_weight(k);
      }
      d[k] = static_cast<T>(counts && k == t ? slope - hard : slope);
    }
  }
};

}  // namespace gradus::kernels
