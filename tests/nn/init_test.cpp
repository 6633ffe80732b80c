#include <gradus/base/random.h>
#include <gradus/nn/nn.h>
#include <gradus/ops/factories.h>

#include <algorithm>
#include <cmath>

#include "support/expect_error.h"

namespace gradus::nn {
namespace {

struct Spread {
  double low, high, mean, deviation;
};
Spread spread(const Tensor& t) {
  const auto v = t.to_vector<double>();
  double sum = 0, squares = 0;
  for (double x : v) sum += x;
  const double mean = sum / static_cast<double>(v.size());
  for (double x : v) squares += (x - mean) * (x - mean);
  return {*std::min_element(v.begin(), v.end()), *std::max_element(v.begin(), v.end()), mean,
          std::sqrt(squares / static_cast<double>(v.size()))};
}

// Fills [-bound, bound) evenly: within it, near to its ends, and with its deviation.
void expect_uniform(const Tensor& t, double bound) {
  const Spread s = spread(t);
  EXPECT_TRUE(s.low >= -bound && s.low <= -0.98 * bound) << s.low << " of " << bound;
  EXPECT_TRUE(s.high <= bound && s.high >= 0.98 * bound) << s.high << " of " << bound;
  EXPECT_TRUE(std::fabs(s.deviation / (bound / std::sqrt(3.0)) - 1) <= 0.03) << s.deviation;
}
void expect_normal(const Tensor& t, double deviation) {
  const Spread s = spread(t);
  EXPECT_TRUE(std::fabs(s.deviation / deviation - 1) <= 0.03) << s.deviation << " of " << deviation;
  EXPECT_TRUE(s.high > 3 * deviation) << s.high;
  EXPECT_TRUE(std::fabs(s.mean) <= 0.05 * deviation) << s.mean;
}

TEST(Init, fans_of_linear_and_conv_weights) {
  const auto linear = init::calculate_fan_in_and_fan_out(empty({5, 3}));
  EXPECT_EQ(linear.in, 3);
  EXPECT_EQ(linear.out, 5);
  const auto conv = init::calculate_fan_in_and_fan_out(empty({8, 4, 3, 2}));
  EXPECT_EQ(conv.in, 24);
  EXPECT_EQ(conv.out, 48);
  EXPECT_GRADUS_ERROR(init::calculate_fan_in_and_fan_out(empty({3})), "E-SHAPE", "fewer than 2 dimensions");
}

TEST(Init, bounds_and_deviations) {
  manual_seed(1);
  const Tensor w = empty({80, 60});
  expect_uniform(init::xavier_uniform_(w, 2), 2 * std::sqrt(6.0 / 140));
  expect_uniform(init::kaiming_uniform_(w), std::sqrt(6.0 / 60));
  expect_uniform(init::kaiming_uniform_(w, 1), std::sqrt(3.0 / 60));
  expect_normal(init::xavier_normal_(w), std::sqrt(2.0 / 140));
  expect_normal(init::kaiming_normal_(w), std::sqrt(2.0 / 60));
  expect_normal(init::normal_(w, 0, 3), 3);
  const Spread shifted = spread(init::uniform_(w, 2, 3));
  EXPECT_TRUE(shifted.low >= 2 && shifted.high < 3);
  EXPECT_EQ(spread(init::constant_(w, 4)).low, 4);
  EXPECT_EQ(spread(init::zeros_(w)).high, 0);
  EXPECT_EQ(spread(init::ones_(w)).low, 1);
}

TEST(Init, layers_start_like_pytorchs) {
  manual_seed(2);
  expect_uniform(Linear(64, 100)->weight, 1.0 / 8);
  expect_uniform(Linear(4, 2000)->bias, 0.5);
  expect_uniform(Conv2d(16, 32, 4)->weight, 1.0 / 16);
  expect_uniform(Conv2d(1, 2000, 2)->bias, 0.5);
  expect_normal(Embedding(100, 50)->weight, 1);
  EXPECT_EQ(BatchNorm2d(3)->weight.to_vector<float>(), (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(BatchNorm2d(3)->bias.to_vector<float>(), (std::vector<float>{0, 0, 0}));
}

TEST(Init, fills_parameters_in_place_without_recording) {
  Linear layer(2, 2);
  const Tensor weight = layer->weight;
  EXPECT_TRUE(init::ones_(layer->weight).is_same(weight));
  EXPECT_TRUE(weight.is_leaf() && weight.requires_grad());
}

TEST(Init, the_same_seed_gives_the_same_weights) {
  auto weights = [](uint64_t seed) {
    manual_seed(seed);
    std::vector<float> values;
    Sequential net(Linear(3, 4), Conv2d(1, 2, 3), Embedding(3, 2));
    for (const Tensor& p : net->parameters())
      for (float v : p.to_vector<float>()) values.push_back(v);
    return values;
  };
  EXPECT_EQ(weights(7), weights(7));
  EXPECT_NE(weights(7), weights(8));
}

}  // namespace
}  // namespace gradus::nn
