#include <gradus/base/log.h>
#include <gradus/base/stats.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/loss.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/softmax.h>
#include <gradus/ops/unary.h>

#include <cmath>

#include "op_case.h"

namespace gradus::optest {
namespace {

constexpr Reduction kNone = Reduction::none, kMean = Reduction::mean, kSum = Reduction::sum;

// The mean or sum of an element-wise loss.
template <class F>
auto reduced(Reduction reduction, F f) {
  return [=](const RefArrays& x) {
    const RefArray each = pointwise(f)(x);
    if (reduction == kNone) return each;
    RefArray y(Shape{});
    for (double v : each.values) y[0] += v;
    if (reduction == kMean) y[0] /= static_cast<double>(each.numel());
    return y;
  };
}

double squared(double x, double t) { return (x - t) * (x - t); }
double binary_logits(double x, double t) {
  const double s = 1 / (1 + std::exp(-x));
  return -t * std::log(s) - (1 - t) * std::log(1 - s);
}

const std::vector<std::vector<Shape>> kPairs = {
    {{3, 4}, {3, 4}}, {{2, 3, 2, 2}, {2, 3, 2, 2}}, {{}, {}}, {{1, 1}, {1, 1}}, {{67}, {67}}};
const std::vector<std::vector<Shape>> kPairsOrEmpty = {
    {{3, 4}, {3, 4}}, {{2, 3, 2, 2}, {2, 3, 2, 2}}, {{0, 3}, {0, 3}}};

GRADUS_OP_CASES(
    pair_loss,
    OpCase{.name = "mse_loss",
           .shapes = kPairs,
           .inputs = {{}, {}},
           .forward = [](const Tensors& x) { return mse_loss(x[0], x[1]); },
           .reference = reduced(kMean, squared),
           .tolerance = 8},
    OpCase{.name = "mse_loss_sum",
           .shapes = kPairsOrEmpty,
           .inputs = {{}, {}},
           .forward = [](const Tensors& x) { return mse_loss(x[0], x[1], kSum); },
           .reference = reduced(kSum, squared),
           .tolerance = 8},
    OpCase{.name = "mse_loss_none",
           .shapes = kPairsOrEmpty,
           .inputs = {{}, {}},
           .forward = [](const Tensors& x) { return mse_loss(x[0], x[1], kNone); },
           .reference = reduced(kNone, squared)},
    OpCase{.name = "l1_loss",
           .shapes = kPairs,
           .inputs = {{uniform(0, 1)}, {uniform(2, 3)}},
           .forward = [](const Tensors& x) { return l1_loss(x[0], x[1]); },
           .reference = reduced(kMean, [](double x, double t) { return std::abs(x - t); })},
    OpCase{
        .name = "huber_loss",
        .shapes = kPairs,
        .inputs = {{uniform(-1, 1).away_from({-0.5, 0.5})}, {uniform(0, 1e-3)}},
        .forward = [](const Tensors& x) { return huber_loss(x[0], x[1], {.reduction = kSum, .delta = 0.5}); },
        .reference = reduced(kSum,
                             [](double x, double t) {
                               const double d = std::abs(x - t);
                               return d <= 0.5 ? d * d / 2 : 0.5 * (d - 0.25);
                             }),
        .tolerance = 8},
    OpCase{.name = "smooth_l1_loss",
           .shapes = kPairs,
           .inputs = {{uniform(-1, 1).away_from({-0.5, 0.5})}, {uniform(0, 1e-3)}},
           .forward =
               [](const Tensors& x) { return smooth_l1_loss(x[0], x[1], {.reduction = kNone, .beta = 0.5}); },
           .reference = reduced(kNone,
                                [](double x, double t) {
                                  const double d = std::abs(x - t);
                                  return d < 0.5 ? d * d : d - 0.25;
                                })},
    OpCase{.name = "bce_logits",
           .shapes = kPairs,
           .inputs = {{}, {uniform(0, 1)}},
           .forward = [](const Tensors& x) { return binary_cross_entropy_with_logits(x[0], x[1]); },
           .reference = reduced(kMean, binary_logits),
           .tolerance = 8},
    OpCase{.name = "bce_logits_weighted",
           .shapes = {{{3, 4}, {3, 4}, {4}, {4}}},
           .inputs = {{}, {uniform(0, 1)}, {uniform(0.5, 2), false}, {uniform(0.5, 2), false}},
           .forward =
               [](const Tensors& x) {
                 return binary_cross_entropy_with_logits(
                     x[0], x[1], {.weight = x[2], .pos_weight = x[3], .reduction = kSum});
               },
           .reference =
               [](const RefArrays& x) {
                 RefArray y(Shape{});
                 for (int64_t i = 0; i < x[0].numel(); ++i) {
                   const double s = 1 / (1 + std::exp(-x[0][i])), t = x[1][i];
                   y[0] -= x[2][i % 4] * (x[3][i % 4] * t * std::log(s) + (1 - t) * std::log(1 - s));
                 }
                 return y;
               },
           .tolerance = 16,
           .gradient_tolerance = 32},
    OpCase{.name = "bce",
           .shapes = kPairs,
           .inputs = {{uniform(0.2, 0.8)}, {uniform(0, 1)}},
           .forward = [](const Tensors& x) { return binary_cross_entropy(x[0], x[1]); },
           .reference = reduced(kMean, [](double x,
                                          double t) { return -t * std::log(x) - (1 - t) * std::log(1 - x); }),
           .tolerance = 8,
           .gradient_tolerance = 32});

std::string message(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.code() + " " + e.what();
  }
  return "no error";
}

TEST(Loss, NUM_23_shapes_that_broadcast_by_accident) {
  std::string warning;
  const auto before = set_warning_handler([&](const std::string& text) { warning = text; });
  const Tensor x = tensor({1.0, 2.0, 3.0});
  const double table = mse_loss(x, x.reshape({3, 1})).item<double>();
  EXPECT_NE(warning.find("[3, 1]"), std::string::npos) << warning;
  EXPECT_NE(warning.find("[3])"), std::string::npos) << warning;
  warning.clear();
  const double same = mse_loss(x, x).item<double>();
  EXPECT_EQ(warning, "");
  set_warning_handler(before);
  EXPECT_TRUE(std::abs(table - 1.333333) <= 1e-6);
  EXPECT_EQ(same, 0);
}

TEST(Loss, mse_is_one_launch_forward_and_one_backward) {
  const Tensor x = ones({32, 1}).requires_grad_(), t = zeros({32, 1});
  const int64_t start = stats().launches;
  const Tensor loss = mse_loss(x, t);
  EXPECT_EQ(stats().launches - start, 1);
  loss.backward();
  EXPECT_LE(stats().launches - start, 4);  // with the 1 that backward() starts from and the leaf's copy
  EXPECT_EQ(x.grad()[0].item<double>(), 2.0 / 32);
}

TEST(Loss, mean_of_nothing_is_nan) {
  EXPECT_TRUE(std::isnan(mse_loss(zeros({0}), zeros({0})).item<double>()));
  EXPECT_EQ(mse_loss(zeros({0}), zeros({0}), kSum).item<double>(), 0);
}

TEST(Loss, half_types_are_summed_in_float32) {
  const Tensor x = ones({10000}, {.dtype = kFloat16});
  EXPECT_EQ(mse_loss(x, x * 0, kSum).item<double>(), 10000);
}

TEST(Loss, logits_of_any_size) {
  const Tensor x = tensor({1000.0, -1000.0, 0.0}), t = tensor({0.0, 1.0, 1.0});
  const auto loss = binary_cross_entropy_with_logits(x, t, {.reduction = kNone}).to_vector<double>();
  EXPECT_EQ(loss[0], 1000);
  EXPECT_EQ(loss[1], 1000);
  EXPECT_TRUE(std::abs(loss[2] - 0.693147) <= 1e-6);
  EXPECT_EQ(binary_cross_entropy(tensor({0.0}), tensor({1.0})).item<double>(), 100);
}

TEST(Loss, refusals) {
  EXPECT_NE(message([] {
              binary_cross_entropy_with_logits(zeros({2}), zeros({2, 1}));
            }).find("E-SHAPE"),
            std::string::npos);
  EXPECT_NE(message([] { huber_loss(zeros({2}), zeros({2}), {.delta = 0}); }).find("E-ARG"),
            std::string::npos);
  EXPECT_NE(message([] { mse_loss(zeros({2}), zeros({3})); }).find("E-SHAPE"), std::string::npos);
}

}  // namespace
}  // namespace gradus::optest
