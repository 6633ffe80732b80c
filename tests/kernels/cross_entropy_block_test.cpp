#include <kernels/cross_entropy_block.cuh>

#include "kernels/kernel_testing.h"

namespace gradus::kernels {
namespace {

struct Case {
  Rows samples;
  bool weighted;
  double smoothing;
};

// Losses and, for a mean, dlogits, from the definition, in double.
struct Result {
  std::vector<double> loss, gradient;
  double mean = 0;
};

template <class T>
Result reference(const std::vector<T>& logits, const std::vector<int64_t>& target,
                 const std::vector<double>& w, double e, Rows samples, int64_t ignore) {
  Result r{{}, std::vector<double>(logits.size()), 0};
  double total = 0;
  for (const int64_t t : target) total += t == ignore ? 0 : w[static_cast<size_t>(t)];
  const auto classes = static_cast<double>(samples.length);
  for (int64_t s = 0; s < samples.count; ++s) {
    auto at = [&](int64_t k) { return static_cast<size_t>(samples.row(s).at(k)); };
    const int64_t t = target[static_cast<size_t>(s)];
    double sum = 0, loss = 0;
    for (int64_t k = 0; k < samples.length; ++k) sum += std::exp(static_cast<double>(logits[at(k)]));
    // The loss is sum_k c_k (-log p_k); its gradient p_j sum_k c_k - c_j.
    std::vector<double> c;
    double c_sum = 0;
    for (int64_t k = 0; k < samples.length; ++k) {
      c.push_back(t == ignore ? 0 : w[static_cast<size_t>(k)] * ((k == t) * (1 - e) + e / classes));
      c_sum += c.back();
      loss += c.back() * (std::log(sum) - static_cast<double>(logits[at(k)]));
    }
    for (int64_t k = 0; k < samples.length; ++k)
      r.gradient[at(k)] =
          (std::exp(static_cast<double>(logits[at(k)])) / sum * c_sum - c[static_cast<size_t>(k)]) / total;
    r.loss.push_back(loss);
    r.mean += loss / total;
  }
  return r;
}

template <class T>
void check(const Case& c) {
  using C = ComputeType<T>;
  const int64_t n = c.samples.count, classes = c.samples.length, ignore = -100;
  const auto logits = random_vector<T>(n * classes);
  std::vector<int64_t> target(static_cast<size_t>(n));
  for (size_t i = 0; i < target.size(); ++i)
    target[i] = i == 1 ? ignore : static_cast<int64_t>(i) * 5 % classes;
  std::vector<C> w;
  for (const float v : random_vector<float>(classes, 7)) w.push_back(c.weighted ? std::fabs(v) : 1);
  const Result want = reference(logits, target, {w.begin(), w.end()}, c.smoothing, c.samples, ignore);
  const CrossEntropyTask<T> task{logits.data(), target.data(), c.weighted ? w.data() : nullptr,
                                 c.samples,     c.smoothing,   ignore};
  on_all_blocks<CrossEntropyForward<T>>([&](Runner run) {
    std::vector<C> loss(static_cast<size_t>(n)), weight(loss), stats(2 * loss.size()), total(1);
    std::vector<T> mean(1), gradient(logits.size());
    const std::vector<T> one(1, static_cast<T>(1.0f));
    run(CrossEntropyForward<T>{task, loss.data(), weight.data(), stats.data()});
    expect_close(loss, want.loss, 2 * tolerance_of<C>());
    EXPECT_EQ(loss[1], 0);
    EXPECT_EQ(weight[1], 0);
    run(CrossEntropyReduce<T>{loss.data(), weight.data(), mean.data(), total.data(), n, true});
    expect_close(mean, {want.mean}, 2 * tolerance_of<T>());
    run(CrossEntropyBackward<T>{task, stats.data(), one.data(), 0, total.data(), gradient.data()});
    expect_close(gradient, want.gradient, tolerance_of<T>());
  });
}

template <class T>
struct CrossEntropyKernel : ::testing::Test {};
TYPED_TEST_SUITE(CrossEntropyKernel, FloatingTypes);

TYPED_TEST(CrossEntropyKernel, MatchesDouble) { check<TypeParam>({{3, 41}, false, 0}); }
TYPED_TEST(CrossEntropyKernel, WeightsAndSmoothing) { check<TypeParam>({{3, 10}, true, 0.1}); }
TEST(CrossEntropyEdges, WithPixels) { check<float>({{6, 4, 3}, true, 0.2}); }

TEST(CrossEntropyEdges, SumAndPerSampleGradient) {
  const std::vector<float> logits{0, 0, 1, 1}, dloss{2, -1};
  const std::vector<int64_t> target{0, 1};
  const CrossEntropyTask<float> task{logits.data(), target.data(), nullptr, {2, 2}, 0, -100};
  on_all_blocks<CrossEntropyForward<float>>([&](Runner run) {
    std::vector<float> loss(2), weight(2), stats(4), sum(1), total(1), gradient(4);
    run(CrossEntropyForward<float>{task, loss.data(), weight.data(), stats.data()});
    run(CrossEntropyReduce<float>{loss.data(), weight.data(), sum.data(), total.data(), 2, false});
    expect_close(sum, {2 * std::log(2.0)}, 1e-6);
    run(CrossEntropyBackward<float>{task, stats.data(), dloss.data(), 1, nullptr, gradient.data()});
    expect_close(gradient, {-1, 1, -0.5, 0.5}, 1e-6);
  });
}

TEST(CrossEntropyEdges, AllIgnoredIsNaNAndATargetOutOfRangeTouchesNothing) {
  const std::vector<float> logits{1, 2, 3, 4};
  const std::vector<int64_t> ignored{7, 7}, wild{int64_t{1} << 40, -1};
  on_all_blocks<CrossEntropyForward<float>>([&](Runner run) {
    std::vector<float> loss(2), weight(2), stats(4), mean(1), total(1), gradient(4);
    const float one = 1;
    run(CrossEntropyForward<float>{
        {logits.data(), ignored.data(), nullptr, {2, 2}, 0, 7}, loss.data(), weight.data(), stats.data()});
    run(CrossEntropyReduce<float>{loss.data(), weight.data(), mean.data(), total.data(), 2, true});
    EXPECT_TRUE(std::isnan(mean[0]));
    const CrossEntropyTask<float> task{logits.data(), wild.data(), nullptr, {2, 2}, 0, -100};
    run(CrossEntropyForward<float>{task, loss.data(), weight.data(), stats.data()});
    EXPECT_TRUE(std::isnan(loss[0]) && std::isnan(loss[1]));
    run(CrossEntropyBackward<float>{task, stats.data(), &one, 0, nullptr, gradient.data()});
    for (const float g : gradient) EXPECT_TRUE(std::isnan(g));
  });
}

// The losses and the gradient of logits 1e8 apart from 0: float has steps of 8 there, log 2 must not meet
// them.
TEST(CrossEntropyEdges, NUM_01_large_logits_keep_log_2) {
  const std::vector<float> logits{1e8F, 1e8F, -1e8F, 1e8F};
  const std::vector<int64_t> target{0, 1};
  const CrossEntropyTask<float> task{logits.data(), target.data(), nullptr, {2, 2}, 0, -100};
  on_all_blocks<CrossEntropyForward<float>>([&](Runner run) {
    std::vector<float> loss(2), weight(2), stats(4), gradient(4);
    const float one = 1;
    run(CrossEntropyForward<float>{task, loss.data(), weight.data(), stats.data()});
    expect_close(loss, {std::log(2.0), 0}, 1e-6);
    run(CrossEntropyBackward<float>{task, stats.data(), &one, 0, nullptr, gradient.data()});
    expect_close(gradient, {-0.5, 0.5, 0, 0}, 1e-6);
  });
}

}  // namespace
}  // namespace gradus::kernels
