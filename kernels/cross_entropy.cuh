// Cross entropy of rows of logits and class indices: the host loops of cpu and sim. One kernel makes the
// losses and their mean or sum, another the gradient. With `log_probabilities` the rows are taken to be
// log_softmax's result already: nll_loss.
#pragma once
#include "kernels/softmax.cuh"

namespace gradus {

/// logits: [samples, classes], contiguous; target: int64 [samples]; weight: [classes] in logits' dtype, may
/// be absent. Computed and kept in the compute type C: losses, C [samples]; stats, C [2, samples], each row's
/// maximum m and log(sum(exp(x - m))) (kept apart: their sum would lose log 2 beside 1e8); total_weight, C.
/// result: [samples] with `each`, else one element: the sum, or with `mean` sum / total_weight.
struct CrossEntropyArgs {
  TensorArg logits, target, weight, losses, stats, total_weight, result;
  const char* name;
  int64_t ignore_index;
  double label_smoothing;
  bool log_probabilities, each, mean;
  static constexpr auto operands = std::tuple{
      in(&CrossEntropyArgs::logits),  in(&CrossEntropyArgs::target), in(&CrossEntropyArgs::weight),
      out(&CrossEntropyArgs::losses), out(&CrossEntropyArgs::stats), out(&CrossEntropyArgs::total_weight),
      out(&CrossEntropyArgs::result)};
};

/// d_logits from the gradient dy of the result.
struct CrossEntropyBackwardArgs {
  TensorArg logits, target, weight, stats, total_weight, dy, d_logits;
  int64_t ignore_index;
  double label_smoothing;
  bool log_probabilities, each, mean;
  static constexpr auto operands =
      std::tuple{in(&CrossEntropyBackwardArgs::logits),       in(&CrossEntropyBackwardArgs::target),
                 in(&CrossEntropyBackwardArgs::weight),       in(&CrossEntropyBackwardArgs::stats),
                 in(&CrossEntropyBackwardArgs::total_weight), in(&CrossEntropyBackwardArgs::dy),
                 out(&CrossEntropyBackwardArgs::d_logits)};
};

/// What is wrong with a target that is neither a class nor ignore_index. Values: the target, the number of
/// classes, ignore_index, the sample.
inline std::string describe_target(const char* op, const int64_t* values) {
  return str(op, ": Target ", values[0], " is out of bounds. Expected a class in [0, ", values[1],
             "), for there are ", values[1], " classes, or ignore_index ", values[2], "; sample ", values[3]);
}

struct CrossEntropyKernel {
  template <class T>
  static void run(const CrossEntropyArgs& a, const Stream&) {
    using C = ComputeType<T>;
    const int64_t samples = a.logits.sizes[0], classes = a.logits.sizes[1];
    check_targets(a, samples, classes);
    parallel_for(0, samples, std::max<int64_t>(1, rows::kGrain / std::max<int64_t>(classes, 1)),
                 [&](int64_t begin, int64_t end) {
                   if (!a.log_probabilities) statistics<T>(a, begin, end, samples, classes);
                   for (int64_t i = begin; i < end; ++i) sample<T>(a, i, samples, classes);
                 });
    const C* losses = a.losses.data<C>();
    const C total = sum(samples, [&](int64_t i) { return losses[i]; });
    const C weight = sum(samples, [&](int64_t i) { return target_weight<T>(a, i); });
    *a.total_weight.data<C>() = weight;
    T* result = a.result.data<T>();
    if (!a.each) *result = static_cast<T>(a.mean ? total / weight : total);
    for (int64_t i = 0; a.each && i < samples; ++i) result[i] = static_cast<T>(losses[i]);
  }

 private:
  // Before anything is written. On a device this is its assertion.
  static void check_targets(const CrossEntropyArgs& a, int64_t samples, int64_t classes) {
    const int64_t* target = a.target.data<int64_t>();
    for (int64_t i = 0; i < samples; ++i) {
      const int64_t t = target[i];
      const int64_t values[] = {t, classes, a.ignore_index, i};
      GRADUS_CHECK((t >= 0 && t < classes) || t == a.ignore_index, "E-TARGET",
                   describe_target(a.name, values),
                   hint("check the labels, and that the last layer has one output for each class"));
    }
  }

  template <class V>
  static auto sum(int64_t n, const V& v) {
    using C = decltype(v(0));
    return reduction::pairwise_sum<C>(n, [&](int64_t begin, int64_t end) {
      return reduction::fold<rows::kLanes, reduction::Add>(end - begin, C{0},
                                                           [&](int64_t i) { return v(begin + i); });
    });
  }

  template <class T>
  static ComputeType<T> target_weight(const CrossEntropyArgs& a, int64_t i) {
    using C = ComputeType<T>;
    const int64_t t = a.target.data<int64_t>()[i];
    if (t == a.ignore_index) return 0;
    return a.weight.present() ? static_cast<C>(a.weight.data<T>()[t]) : C{1};
  }

  // A group of rows at a time, for the logarithms to be vector code.
  template <class T>
  static void statistics(const CrossEntropyArgs& a, int64_t begin, int64_t end, int64_t samples,
                         int64_t classes) {
    using C = ComputeType<T>;
    C *maximum = a.stats.data<C>(), *log_sum = maximum + samples, s[rows::kLanes] = {};
    for (int64_t i = begin; i < end; i += rows::kLanes) {
      const int64_t count = std::min<int64_t>(rows::kLanes, end - i);
      rows::max_and_sum_exp(a.logits.data<T>() + i * classes, count, classes, maximum + i, s);
#pragma omp simd
      for (int r = 0; r < rows::kLanes; ++r) s[r] = math::log(s[r]);
      std::copy_n(s, count, log_sum + i);
    }
  }

  template <class T>
  static void sample(const CrossEntropyArgs& a, int64_t i, int64_t samples, int64_t classes) {
    using C = ComputeType<T>;
    const T* x = a.logits.data<T>() + i * classes;
    const int64_t t = a.target.data<int64_t>()[i];
    const C m = a.log_probabilities ? C{0} : a.stats.data<C>()[i];
    const C log_s = a.log_probabilities ? C{0} : a.stats.data<C>()[samples + i];
    auto loss = [&](int64_t k) { return log_s - (static_cast<C>(x[k]) - m); };
    C total = 0;
    if (t != a.ignore_index) total = target_weight<T>(a, i) * loss(t);
    if (t != a.ignore_index && a.label_smoothing > 0) {
      const C e = static_cast<C>(a.label_smoothing);
      const T* w = a.weight.present() ? a.weight.data<T>() : nullptr;
      const C smooth = reduction::fold<rows::kLanes, reduction::Add>(
          classes, C{0}, [&](int64_t k) { return w != nullptr ? static_cast<C>(w[k]) * loss(k) : loss(k); });
      total = (1 - e) * total + e / static_cast<C>(classes) * smooth;
    }
    a.losses.data<C>()[i] = total;
  }
};

struct CrossEntropyBackwardKernel {
  template <class T>
  static void run(const CrossEntropyBackwardArgs& a, const Stream&) {
    using C = ComputeType<T>;
    const int64_t samples = a.logits.sizes[0], classes = a.logits.sizes[1];
    const T* w = a.weight.present() ? a.weight.data<T>() : nullptr;
    C all_weights = static_cast<C>(classes);
    if (w != nullptr) {
      all_weights = reduction::fold<rows::kLanes, reduction::Add>(
          classes, C{0}, [&](int64_t k) { return static_cast<C>(w[k]); });
    }
    parallel_for(0, samples, std::max<int64_t>(1, rows::kGrain / std::max<int64_t>(classes, 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) sample<T>(a, i, samples, classes, w, all_weights);
                 });
  }

 private:
  // d = g ((1 - e) w[t] (p - onehot(t)) + e / K (p sum(w) - w)), p = softmax(x); without p for nll_loss.
  template <class T, class C>
  static void sample(const CrossEntropyBackwardArgs& a, int64_t i, int64_t samples, int64_t classes,
                     const T* w, C all_weights) {
    const T* x = a.logits.data<T>() + i * classes;
    T* d = a.d_logits.data<T>() + i * classes;
    const int64_t t = a.target.data<int64_t>()[i];
    if (t == a.ignore_index) {
      std::fill_n(d, classes, T(0.0f));
      return;
    }
    const T* dy = a.dy.data<T>();
    C g = static_cast<C>(a.each ? dy[i] : dy[0]);
    if (a.mean) g /= *a.total_weight.data<C>();
    const C e = static_cast<C>(a.label_smoothing), share = g * e / static_cast<C>(classes);
    const C hard = g * (1 - e) * (w != nullptr ? static_cast<C>(w[t]) : C{1});
    if (a.log_probabilities) {
      std::fill_n(d, classes, T(0.0f));
      d[t] = static_cast<T>(-hard);
      return;
    }
    const C m = a.stats.data<C>()[i], log_s = a.stats.data<C>()[samples + i],
            of_p = hard + share * all_weights;
    auto slope = [=](C v) { return of_p * math::exp((v - m) - log_s); };
    if (w == nullptr || share == 0) {
      rows::map(x, d, classes, [=](C v) { return slope(v) - share; });
    } else {
#pragma omp simd
      for (int64_t k = 0; k < classes; ++k)
        d[k] = static_cast<T>(slope(static_cast<C>(x[k])) - share * static_cast<C>(w[k]));
    }
    if constexpr (std::is_same_v<T, C>) {
      d[t] -= hard;
    } else {  // once more, to round once only
      const C smooth = w != nullptr ? share * static_cast<C>(w[t]) : share;
      d[t] = static_cast<T>(slope(static_cast<C>(x[t])) - smooth - hard);
    }
  }
};

}  // namespace gradus
