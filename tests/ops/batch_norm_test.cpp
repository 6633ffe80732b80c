#include <gradus/autograd/backward.h>
#include <gradus/autograd/gradcheck.h>
#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/batch_norm.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/random.h>
#include <gradus/ops/reduce.h>

#include <cmath>

#include "shaping.h"
#include "support/expect_error.h"

namespace gradus::optest {
namespace {

constexpr double kEps = 1e-2;

// Normalises channel c with the given mean and variance of it; then weight and bias where they are given.
template <class Statistics>
RefArray normalised(const RefArray& x, const Statistics& statistics, const RefArray* weight,
                    const RefArray* bias) {
  return build(x.sizes, [&](const Shape& at) {
    const auto [mean, variance] = statistics(at[1]);
    double y = (x.at(at) - mean) / std::sqrt(variance + kEps);
    if (weight) y *= (*weight)[at[1]];
    if (bias) y += (*bias)[at[1]];
    return y;
  });
}

std::pair<double, double> mean_and_variance(const RefArray& x, int64_t channel) {
  const int64_t inner = x.numel() / (x.sizes[0] * x.sizes[1]);
  double sum = 0, squares = 0, count = 0;
  auto each = [&](auto f) {
    for (int64_t i = 0; i < x.numel(); ++i)
      if (i / inner % x.sizes[1] == channel) f(x[i]);
  };
  each([&](double v) { sum += v, ++count; });
  each([&](double v) { squares += (v - sum / count) * (v - sum / count); });
  return {sum / count, squares / count};
}

RefArray training_reference(const RefArrays& x) {
  return normalised(
      x[0], [&](int64_t c) { return mean_and_variance(x[0], c); }, x.size() > 1 ? &x[1] : nullptr,
      x.size() > 2 ? &x[2] : nullptr);
}

GRADUS_OP_CASES(batch_norm,
                OpCase{.name = "batch_norm_training",
                       .shapes = {{{4, 3}, {3}, {3}},
                                  {{2, 3, 4}, {3}, {3}},
                                  {{2, 3, 2, 2}, {3}, {3}},
                                  {{3, 1}, {1}, {1}},
                                  {{1, 2, 2, 1}, {2}, {2}},
                                  {{0, 2, 3, 3}, {2}, {2}}},
                       .inputs = {{}, {}, {}},
                       .forward =
                           [](const Tensors& x) {
                             return batch_norm(x[0], {}, {}, x[1], x[2], {.training = true, .eps = kEps});
                           },
                       .reference = training_reference,
                       .tolerance = 32,
                       .gradient_tolerance = 64},
                OpCase{.name = "batch_norm_training_plain",
                       .shapes = {{{4, 3}}, {{2, 3, 2, 2}}},
                       .inputs = {{}},
                       .forward =
                           [](const Tensors& x) {
                             return batch_norm(x[0], {}, {}, {}, {}, {.training = true, .eps = kEps});
                           },
                       .reference = training_reference,
                       .tolerance = 32,
                       .gradient_tolerance = 64},
                OpCase{.name = "batch_norm_eval",
                       .shapes = {{{4, 3}, {3}, {3}, {3}, {3}},
                                  {{2, 3, 2, 2}, {3}, {3}, {3}, {3}},
                                  {{1, 1}, {1}, {1}, {1}, {1}},
                                  {{0, 2}, {2}, {2}, {2}, {2}}},
                       .inputs = {{}, {normal(), false}, {uniform(0.5, 2), false}, {}, {}},
                       .forward =
                           [](const Tensors& x) {
                             return batch_norm(x[0], x[1], x[2], x[3], x[4], {.eps = kEps});
                           },
                       .reference =
                           [](const RefArrays& x) {
                             return normalised(
                                 x[0], [&](int64_t c) { return std::pair(x[1][c], x[2][c]); }, &x[3], &x[4]);
                           },
                       .tolerance = 16,
                       .gradient_tolerance = 64});

TEST(BatchNorm, AG_11_gradient_penalty) {
  const Tensor x = randn({4, 2}, kFloat64).requires_grad_(), w = randn({2}, kFloat64).requires_grad_();
  EXPECT_TRUE(autograd::gradgradcheck(autograd::SingleGradcheckFunction([](const Tensors& t) {
                                        const Tensor y =
                                            batch_norm(t[0], {}, {}, t[1], {}, {.training = true});
                                        return (y * y * y).sum();
                                      }),
                                      {x, w}));
}

TEST(BatchNorm, the_running_statistics_move_towards_the_batch) {
  const Tensor x = tensor<float>({1, 10, 3, 20, 5, 30}, {3, 2});
  const Tensor mean = zeros({2}), variance = ones({2});
  batch_norm(x, mean, variance, {}, {}, {.training = true, .momentum = 0.25});
  EXPECT_EQ(mean.to_vector<float>(), (std::vector<float>{0.75, 5}));
  // unbiased variances 4 and 100
  EXPECT_EQ(variance.to_vector<float>(), (std::vector<float>{1.75, 25.75}));
  batch_norm(x, mean, variance);
  EXPECT_EQ(mean.to_vector<float>(), (std::vector<float>{0.75, 5}));
}

TEST(BatchNorm, a_large_mean_does_not_cancel_the_variance) {
  const Tensor x = tensor<float>({10000, 10001, 10002, 10003}, {4, 1});
  const RefArray y = values_of(batch_norm(x, {}, {}, {}, {}, {.training = true}));
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(std::fabs(y[i] - (i - 1.5) / std::sqrt(1.25 + 1e-5)) <= 1e-6);
}

TEST(BatchNorm, NUM_11_an_empty_batch_leaves_the_statistics_alone) {
  const Tensor mean = zeros({2}), variance = ones({2});
  for (const Shape& s : {Shape{0, 2, 3, 3}, Shape{0, 2}}) {
    Tensor weight = ones({2}).requires_grad_(), bias = zeros({2}).requires_grad_();
    const Tensor y = batch_norm(zeros(s), mean, variance, weight, bias, {.training = true});
    EXPECT_EQ(y.sizes(), s);
    y.sum().backward();
    EXPECT_EQ(weight.grad().to_vector<float>(), (std::vector<float>{0, 0}));
    EXPECT_EQ(bias.grad().to_vector<float>(), (std::vector<float>{0, 0}));
  }
  EXPECT_EQ(mean.to_vector<float>(), (std::vector<float>{0, 0}));
  EXPECT_EQ(variance.to_vector<float>(), (std::vector<float>{1, 1}));
}

TEST(BatchNorm, NUM_09_one_value_per_channel) {
  const Tensor mean = zeros({3}), variance = ones({3});
  for (const Shape& s : {Shape{1, 3}, Shape{1, 3, 1, 1}})
    EXPECT_EQ(
        ::gradus::testing::error_of([&] { batch_norm(ones(s), mean, variance, {}, {}, {.training = true}); }),
        "E-SHAPE: batch_norm: Expected more than 1 value per channel when training, got input size " +
            to_string(s) + "\n  hint: use a larger batch, drop_last in the loader, or eval()");
  EXPECT_EQ(mean.to_vector<float>(), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(variance.to_vector<float>(), (std::vector<float>{1, 1, 1}));
  EXPECT_TRUE(std::fabs(batch_norm(ones({1, 3}), mean, variance).to_vector<double>()[0] - 0.999995) <= 1e-7);
  EXPECT_EQ(batch_norm(ones({1, 3, 2, 2}), mean, variance, {}, {}, {.training = true}).sizes(),
            (Shape{1, 3, 2, 2}));
}

TEST(BatchNorm, keeps_the_memory_format_and_mixes_half_with_float) {
  const Tensor x = randn({2, 3, 4, 4}).contiguous(MemoryFormat::channels_last);
  Tensor weight = ones({3}).requires_grad_(), half = x.to(kBFloat16).requires_grad_();
  EXPECT_EQ(batch_norm(x, {}, {}, weight, {}, {.training = true}).suggest_memory_format(),
            MemoryFormat::channels_last);
  const Tensor y = batch_norm(half, {}, {}, weight, {}, {.training = true});
  EXPECT_EQ(y.dtype(), kBFloat16);
  y.sum().backward();
  EXPECT_EQ(half.grad().dtype(), kBFloat16);
  EXPECT_EQ(weight.grad().dtype(), kFloat32);
}

TEST(BatchNorm, names_what_is_wrong) {
  EXPECT_GRADUS_ERROR(batch_norm(zeros({3}), zeros({3}), ones({3})), "E-SHAPE", "got shape [3]");
  EXPECT_GRADUS_ERROR(batch_norm(zeros({2, 3}), zeros({4}), ones({3})), "E-SHAPE",
                      "expected running_mean of shape [3], one for each channel, got [4]");
  EXPECT_GRADUS_ERROR(batch_norm(zeros({2, 3}), {}, {}), "E-ARG", "running_mean and running_var");
  EXPECT_GRADUS_ERROR(batch_norm(zeros({2, 3}, kInt64), {}, {}, {}, {}, {.training = true}), "E-DTYPE",
                      "int64");
}

}  // namespace
}  // namespace gradus::optest
