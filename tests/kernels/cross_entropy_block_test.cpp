#include <kernels/cross_entropy_block.cuh>

#include "kernels/kernel_testing.h"

namespace gradus::kernels {
namespace {

struct Case {
  int64_t samples, classes;
  bool weighted;
  double smoothing;
};

// Losses and, for a mean, d_logits, from the definition, in double.
struct Result {
  std::vector<double> loss, gradient;
  double mean = 0;
};

template <class T>
Result reference(const std::vector<T>& logits, const std::vector<int64_t>& target,
                 const std::vector<double>& w, const Case& c, int64_t ignore) {
  Result r{{}, std::vector<double>(logits.size()), 0};
  double total = 0;
  for (const int64_t t : target) total += t == ignore ? 0 : w[static_cast<size_t>(t)];
  const auto classes = static_cast<size_t>(c.classes);
  const double e = c.smoothing;
  for (size_t s = 0; s < target.size(); ++s) {
    auto logit = [&](size_t k) { return static_cast<double>(logits[s * classes + k]); };
    double sum = 0, loss = 0;
    for (size_t k = 0; k < classes; ++k) sum += std::exp(logit(k));
    // The loss is sum_k share_k (-log p_k); its gradient p_j sum_k share_k - share_j.
    std::vector<double> share;
    double share_sum = 0;
    for (size_t k = 0; k < classes; ++k) {
      const bool hit = static_cast<int64_t>(k) == target[s];
      share.push_back(target[s] == ignore ? 0 : w[k] * (hit * (1 - e) + e / static_cast<double>(classes)));
      share_sum += share.back();
      loss += share.back() * (std::log(sum) - logit(k));
    }
    for (size_t k = 0; k < classes; ++k)
      r.gradient[s * classes + k] = (std::exp(logit(k)) / sum * share_sum - share[k]) / total;
    r.loss.push_back(loss);
    r.mean += loss / total;
  }
  return r;
}

std::string describe(const char* op, const int64_t* values) { return str(op, values[0], values[3]); }

// The launches of a mean, or with `each` of none, on the memory that they need.
template <class T>
struct Launches {
  using C = ComputeType<T>;
  CrossEntropyTask<T> task;
  Teams teams;
  bool each = false;
  DeviceFault record{};
  std::vector<C> losses = std::vector<C>(static_cast<size_t>(task.samples)),
                 stats = std::vector<C>(2 * losses.size()), total_weight = std::vector<C>(1);
  std::vector<T> per_sample = std::vector<T>(losses.size()), mean = std::vector<T>(1),
                 gradient = std::vector<T>(losses.size() * static_cast<size_t>(task.classes));

  void forward(Runner run) {
    run(CrossEntropyForward<T>{task,
                               losses.data(),
                               each ? per_sample.data() : nullptr,
                               stats.data(),
                               teams,
                               {&record, "cross_entropy", &describe}});
  }
  void reduce(Runner run, int64_t part_length) {
    const int64_t n = task.samples;
    CrossEntropyReduce<T> last{task, losses.data(), nullptr, nullptr, mean.data(), total_weight.data(), n,
                               n,    true};
    std::vector<LossAndWeight<C>> parts(static_cast<size_t>(n));
    if (part_length < n) {
      CrossEntropyReduce<T> first = last;
      first.parts = parts.data(), first.part_length = part_length;
      run(first);
      last.from = parts.data(), last.count = last.part_length = (n + part_length - 1) / part_length;
    }
    run(last);
  }
  void backward(Runner run, const std::vector<T>& dloss) {
    run(CrossEntropyBackward<T>{task, stats.data(), dloss.data(), each ? 1 : 0,
                                each ? nullptr : total_weight.data(), gradient.data(), teams});
  }
};

template <class T>
void check(const Case& c) {
  using C = ComputeType<T>;
  constexpr int64_t kIgnore = -100;
  const auto logits = random_vector<T>(c.samples * c.classes);
  std::vector<int64_t> target(static_cast<size_t>(c.samples));
  for (size_t i = 0; i < target.size(); ++i)
    target[i] = i == 1 ? kIgnore : static_cast<int64_t>(i) * 5 % c.classes;
  std::vector<T> w;
  for (const float v : random_vector<float>(c.classes, 7))
    w.push_back(static_cast<T>(c.weighted ? std::fabs(v) : 1));
  const Result want = reference(logits, target, {w.begin(), w.end()}, c, kIgnore);
  const CrossEntropyTask<T> task{logits.data(), target.data(), c.weighted ? w.data() : nullptr,
                                 c.samples,     c.classes,     c.smoothing,
                                 kIgnore,       false};
  on_all_blocks<CrossEntropyForward<T>>([&](Runner run) {
    for (const int lanes : {0, 4}) {
      Launches<T> l{task, {lanes}};
      l.forward(run);
      expect_close(l.losses, want.loss, 2 * tolerance_of<C>());
      EXPECT_EQ(l.losses[1], 0);
      for (const int64_t part_length : {c.samples, int64_t{2}}) {
        l.reduce(run, part_length);
        expect_close(l.mean, {want.mean}, 2 * tolerance_of<T>());
      }
      l.backward(run, {static_cast<T>(1.0f)});
      expect_close(l.gradient, want.gradient, tolerance_of<T>());
    }
  });
}

template <class T>
struct CrossEntropyKernel : ::testing::Test {};
TYPED_TEST_SUITE(CrossEntropyKernel, FloatingTypes);

TYPED_TEST(CrossEntropyKernel, MatchesDouble) { check<TypeParam>({3, 41, false, 0}); }
TYPED_TEST(CrossEntropyKernel, WeightsAndSmoothing) { check<TypeParam>({5, 10, true, 0.1}); }

CrossEntropyTask<float> small_task(const std::vector<float>& logits, const std::vector<int64_t>& target,
                                   int64_t ignore = -100, bool log_probabilities = false) {
  return {logits.data(), target.data(), nullptr, 2, 2, 0, ignore, log_probabilities};
}

TEST(CrossEntropyEdges, PerSample) {
  const std::vector<float> logits{0, 0, 1, 1};
  const std::vector<int64_t> target{0, 1};
  on_all_blocks<CrossEntropyForward<float>>([&](Runner run) {
    Launches<float> l{small_task(logits, target), {2}, true};
    l.forward(run);
    expect_close(l.per_sample, {std::log(2.0), std::log(2.0)}, 1e-6);
    l.backward(run, {2, -1});
    expect_close(l.gradient, {-1, 1, -0.5, 0.5}, 1e-6);
  });
}

TEST(CrossEntropyEdges, LogProbabilities) {  // nll_loss
  const std::vector<float> logits{-1, -2, -3, -4};
  const std::vector<int64_t> target{1, 7};
  on_all_blocks<CrossEntropyForward<float>>([&](Runner run) {
    for (const int lanes : {0, 1, 2}) {
      Launches<float> l{small_task(logits, target, 7, true), {lanes}};
      l.forward(run);
      expect_close(l.losses, {2, 0}, 0);
      l.reduce(run, 2);
      expect_close(l.mean, {2}, 0);
      l.backward(run, {3});
      expect_close(l.gradient, {0, -3, 0, 0}, 0);
    }
  });
}

TEST(CrossEntropyEdges, AllIgnoredIsNaN) {
  const std::vector<float> logits{1, 2, 3, 4};
  const std::vector<int64_t> ignored{7, 7};
  on_all_blocks<CrossEntropyForward<float>>([&](Runner run) {
    Launches<float> l{small_task(logits, ignored, 7), {2}};
    l.forward(run);
    l.reduce(run, 2);
    EXPECT_TRUE(std::isnan(l.mean[0]));
    l.backward(run, {1});
    expect_close(l.gradient, {0, 0, 0, 0}, 0);
  });
}

TEST(CrossEntropyEdges, ATargetThatIsNoClassIsReportedFirst) {
  const std::vector<float> logits{1, 2, 3, 4};
  const std::vector<int64_t> wild{1, int64_t{1} << 40};
  on_all_blocks<CrossEntropyForward<float>>([&](Runner run) {
    for (const int lanes : {0, 2}) {
      Launches<float> l{small_task(logits, wild), {lanes}};
      EXPECT_THROW(l.forward(run), DeviceTrap);
      EXPECT_EQ(l.record.written, 1);
      EXPECT_EQ(l.record.describe(l.record.op, l.record.values), "cross_entropy10995116277761");
      l.backward(run, {1});  // never comes that far on a GPU; yet it reads nothing out of bounds
      EXPECT_EQ(l.gradient[2], 0);
    }
  });
}

// The losses and the gradient of logits 1e8 apart from 0: float has steps of 8 there, log 2 must not meet
// them.
TEST(CrossEntropyEdges, NUM_01_large_logits_keep_log_2) {
  const std::vector<float> logits{1e8F, 1e8F, -1e8F, 1e8F};
  const std::vector<int64_t> target{0, 1};
  on_all_blocks<CrossEntropyForward<float>>([&](Runner run) {
    Launches<float> l{small_task(logits, target), {2}, true};
    l.forward(run);
    expect_close(l.losses, {std::log(2.0), 0}, 1e-6);
    l.backward(run, {1, 1});
    expect_close(l.gradient, {-0.5, 0.5, 0, 0}, 1e-6);
  });
}

}  // namespace
}  // namespace gradus::kernels
