#include <gradus/ops/arithmetic.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/loss.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/softmax.h>

#include <cmath>

#include "op_case.h"

namespace gradus::optest {
namespace {

constexpr Reduction kNone = Reduction::none, kMean = Reduction::mean, kSum = Reduction::sum;

struct Settings {
  int64_t ignore = -100;
  Reduction reduction = kMean;
  double smoothing = 0;
  bool log_probabilities = false;
};

// By the definition, over [N, C] or [N, C, d…] logits, targets and (perhaps) class weights.
auto reference(Settings s) {
  return [=](const RefArrays& x) {
    const Shape& sizes = x[0].sizes;
    const int64_t classes = sizes[1], inner = sizes.numel() == 0 ? 1 : sizes.numel() / (sizes[0] * classes);
    auto weight = [&](int64_t k) { return x.size() > 2 ? x[2][k] : 1.0; };
    RefArray loss(x[1].sizes);
    double total = 0, weights = 0;
    for (int64_t i = 0; i < loss.numel(); ++i) {
      const int64_t first = i / inner * classes * inner + i % inner, t = static_cast<int64_t>(x[1][i]);
      if (t == s.ignore) continue;
      double z = 0, smooth = 0;
      for (int64_t k = 0; k < classes; ++k) z += std::exp(x[0][first + k * inner]);
      const double lse = s.log_probabilities ? 0 : std::log(z);
      for (int64_t k = 0; k < classes; ++k) smooth += weight(k) * (lse - x[0][first + k * inner]);
      loss[i] = (1 - s.smoothing) * weight(t) * (lse - x[0][first + t * inner]) +
                s.smoothing / static_cast<double>(classes) * smooth;
      total += loss[i], weights += weight(t);
    }
    if (s.reduction == kNone) return loss;
    return RefArray(Shape{}, s.reduction == kMean ? total / weights : total);
  };
}

const std::vector<std::vector<Shape>> kShapes = {{{6, 4}, {6}}, {{1, 4}, {1}}, {{40, 4}, {40}}};
const std::vector<std::vector<Shape>> kSpatial = {{{2, 4, 3, 2}, {2, 3, 2}}, {{1, 4, 5, 1}, {1, 5, 1}}};
const std::vector<std::vector<Shape>> kWeighted = {{{6, 4}, {6}, {4}}, {{2, 4, 3, 2}, {2, 3, 2}, {4}}};
const Input kTarget{integers(0, 4)}, kWeight{uniform(0.5, 2), false};

GRADUS_OP_CASES(
    cross_entropy,
    OpCase{.name = "cross_entropy",
           .shapes = kShapes,
           .inputs = {{}, kTarget},
           .forward = [](const Tensors& x) { return cross_entropy(x[0], x[1]); },
           .reference = reference({}),
           .tolerance = 8},
    OpCase{.name = "cross_entropy_sum_empty",
           .shapes = {{{0, 4}, {0}}, {{3, 4}, {3}}},
           .inputs = {{}, kTarget},
           .forward = [](const Tensors& x) { return cross_entropy(x[0], x[1], {.reduction = kSum}); },
           .reference = reference({.reduction = kSum}),
           .tolerance = 8},
    OpCase{.name = "cross_entropy_many_classes",
           .shapes = {{{5, 37}, {5}}},
           .inputs = {{}, {integers(0, 37)}},
           .forward = [](const Tensors& x) { return cross_entropy(x[0], x[1], {.reduction = kNone}); },
           .reference = reference({.reduction = kNone})},
    OpCase{.name = "cross_entropy_spatial",
           .shapes = kSpatial,
           .inputs = {{}, kTarget},
           .forward = [](const Tensors& x) { return cross_entropy(x[0], x[1], {.reduction = kNone}); },
           .reference = reference({.reduction = kNone})},
    OpCase{.name = "cross_entropy_everything",
           .shapes = kWeighted,
           .inputs = {{}, kTarget, kWeight},
           .forward =
               [](const Tensors& x) {
                 return cross_entropy(x[0], x[1],
                                      {.weight = x[2], .ignore_index = 1, .label_smoothing = 0.2});
               },
           .reference = reference({.ignore = 1, .smoothing = 0.2}),
           .tolerance = 8},
    OpCase{.name = "cross_entropy_smooth",
           .shapes = kShapes,
           .inputs = {{}, kTarget},
           .forward =
               [](const Tensors& x) {
                 return cross_entropy(x[0], x[1], {.reduction = kSum, .label_smoothing = 0.1});
               },
           .reference = reference({.reduction = kSum, .smoothing = 0.1}),
           .tolerance = 8},
    OpCase{
        .name = "nll_loss",
        .shapes = kWeighted,
        .inputs = {{uniform(-3, -0.5)}, kTarget, kWeight},
        .forward = [](const Tensors& x) { return nll_loss(x[0], x[1], {.weight = x[2], .ignore_index = 2}); },
        .reference = reference({.ignore = 2, .log_probabilities = true}),
        .tolerance = 8},
    OpCase{.name = "nll_loss_none",
           .shapes = kShapes,
           .inputs = {{uniform(-3, -0.5)}, kTarget},
           .forward = [](const Tensors& x) { return nll_loss(x[0], x[1], {.reduction = kNone}); },
           .reference = reference({.reduction = kNone, .log_probabilities = true})},
    OpCase{.name = "cross_entropy_probabilities",
           .shapes = {{{6, 4}, {6, 4}}, {{2, 4, 3, 2}, {2, 4, 3, 2}}},
           .inputs = {{}, {uniform(0, 0.5)}},
           .forward = [](const Tensors& x) { return cross_entropy(x[0], x[1], {.reduction = kNone}); },
           .reference =
               [](const RefArrays& x) {
                 const Shape& s = x[0].sizes;
                 const int64_t inner = s.numel() / (s[0] * s[1]);
                 Shape out = s;
                 out.erase(1);
                 RefArray y(out);
                 for (int64_t i = 0; i < y.numel(); ++i) {
                   const int64_t first = i / inner * s[1] * inner + i % inner;
                   double z = 0;
                   for (int64_t k = 0; k < s[1]; ++k) z += std::exp(x[0][first + k * inner]);
                   for (int64_t k = 0; k < s[1]; ++k)
                     y[i] -= x[1][first + k * inner] * (x[0][first + k * inner] - std::log(z));
                 }
                 return y;
               },
           .tolerance = 8});

Tensor targets(std::vector<int64_t> values) { return tensor(values); }

std::vector<double> gradient(const Tensor& logits, const Tensor& target,
                             const CrossEntropyOptions& options = {}) {
  Tensor x = logits.detach().clone().requires_grad_();
  cross_entropy(x, target, options).sum().backward();
  return x.grad().to_vector<double>();
}

void expect_near(const std::vector<double>& got, const std::vector<double>& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_TRUE(std::abs(got[i] - want[i]) <= tolerance) << i << ": " << got[i];
}

TEST(CrossEntropy, NUM_01_huge_logits) {
  const Tensor huge = tensor({{1e8, 1e8}}), far = tensor({{0, 200}}).to(kFloat32), zero = targets({0});
  EXPECT_TRUE(std::abs(cross_entropy(huge, zero).item<double>() - 0.693147) <= 1e-6);
  expect_near(gradient(huge, zero), {-0.5, 0.5}, 1e-6);
  for (DType dtype : {kFloat16, kBFloat16, kFloat32, kFloat64}) {
    EXPECT_EQ(cross_entropy(far.to(dtype), zero).item<double>(), 200) << to_string(dtype);
    expect_near(gradient(far.to(dtype), zero), {-1, 1}, 1e-6);
  }
}

TEST(CrossEntropy, NUM_03_ignore_index) {
  const Tensor x = tensor({{1, 2, 3}, {1, 2, 3}}).to(kFloat32), none = targets({-100, -100});
  EXPECT_TRUE(std::isnan(cross_entropy(x, none).item<double>()));
  EXPECT_EQ(cross_entropy(x, none, {.reduction = kSum}).item<double>(), 0);
  EXPECT_EQ(cross_entropy(x, none, {.reduction = kNone}).to_vector<double>(), (std::vector<double>{0, 0}));
  for (Reduction r : {kMean, kSum, kNone})
    EXPECT_EQ(gradient(x, none, {.reduction = r}), std::vector<double>(6, 0)) << static_cast<int>(r);

  const std::vector<double> slope{0.090031, 0.244728, -0.334759, 0, 0, 0};
  EXPECT_TRUE(std::abs(cross_entropy(x, targets({2, -100})).item<double>() - 0.407606) <= 1e-6);
  expect_near(gradient(x, targets({2, -100})), slope, 1e-6);
  EXPECT_TRUE(std::abs(cross_entropy(x, targets({2, 1}), {.ignore_index = 1}).item<double>() - 0.407606) <=
              1e-6);
  expect_near(gradient(x, targets({2, 1}), {.ignore_index = 1}), slope, 1e-6);
}

TEST(CrossEntropy, NUM_05_target_out_of_range) {
  const Tensor x = tensor({{2.5, 0.0, 0.0}, {0.0, 0.0, 2.5}});
  const auto message = [&](std::vector<int64_t> target, int64_t ignore_index) -> std::string {
    try {
      cross_entropy(x, targets(target), {.ignore_index = ignore_index});
    } catch (const Error& e) {
      return e.code() + " " + e.what();
    }
    return "no error";
  };
  const std::pair<int64_t, int64_t> cases[] = {{1000, -100}, {3, -100}, {-4, -1}, {-1, -100}};
  for (const auto& [bad, ignored] : cases) {
    const std::string text = message({0, bad}, ignored);
    EXPECT_NE(text.find("E-TARGET"), std::string::npos) << text;
    EXPECT_NE(text.find(str("Target ", bad, " is out of bounds.")), std::string::npos) << text;
    EXPECT_NE(text.find("3 classes"), std::string::npos) << text;
  }
  EXPECT_TRUE(std::isfinite(cross_entropy(x, targets({0, 2})).item<double>()));  // the next call works
  EXPECT_THROW(nll_loss(x, targets({0, 3})), Error);
}

TEST(CrossEntropy, NUM_21_no_samples) {
  const Tensor x = zeros({0, 3}), t = zeros({0}, {.dtype = kInt64});
  EXPECT_TRUE(std::isnan(cross_entropy(x, t).item<double>()));
  EXPECT_EQ(cross_entropy(x, t, {.reduction = kSum}).item<double>(), 0);
}

TEST(CrossEntropy, one_sample_without_a_batch) {
  const Tensor x = tensor({1.0, 2.0, 3.0}), t = tensor(2.0).to(kInt64);
  EXPECT_TRUE(std::abs(cross_entropy(x, t).item<double>() - 0.407606) <= 1e-6);
  expect_near(gradient(x, t), {0.090031, 0.244728, -0.334759}, 1e-6);
}

TEST(CrossEntropy, is_nll_of_log_softmax) {
  const Tensor x = tensor({{1.0, -2.0, 0.5}, {0.0, 3.0, 1.0}}), t = targets({1, 0});
  EXPECT_TRUE(std::abs(cross_entropy(x, t).item<double>() - nll_loss(log_softmax(x, 1), t).item<double>()) <=
              1e-6);
}

TEST(CrossEntropy, refusals) {
  const auto code = [](auto f) -> std::string {
    try {
      f();
    } catch (const Error& e) {
      return e.code();
    }
    return "none";
  };
  const Tensor x = zeros({2, 3});
  EXPECT_EQ(code([&] { cross_entropy(x, zeros({2, 1}, {.dtype = kInt64})); }), "E-SHAPE");
  EXPECT_EQ(code([&] { cross_entropy(x, zeros({2})); }), "E-DTYPE");
  EXPECT_EQ(code([&] { cross_entropy(x, targets({0, 1}), {.weight = ones({2})}); }), "E-SHAPE");
  EXPECT_EQ(code([&] { cross_entropy(x, targets({0, 1}), {.label_smoothing = 2}); }), "E-ARG");
}

}  // namespace
}  // namespace gradus::optest
