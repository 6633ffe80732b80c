#include <gradus/base/stats.h>
#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/factories.h>
#include <gradus/tensor/node.h>

#include <cmath>
#include <limits>

#include "op_case.h"

namespace gradus::optest {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
double gelu_of(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }
double gelu_tanh_of(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

template <class F, class R>
OpCase activation(const char* name, F op, R reference, Draw draw = normal()) {
  return {.name = name,
          .shapes = pointwise_shapes(1),
          .inputs = {{draw}},
          .forward = [op](const Tensors& x) { return op(x[0]); },
          .reference = pointwise(reference)};
}

OpCase relu_case() {
  OpCase c = activation(
      "relu", relu, [](double x) { return x > 0 ? x : 0; }, normal().away_from({0}));
  c.dtypes = kFloatingTypes | dtypes(kInt32, kInt64);
  return c;
}

GRADUS_OP_CASES(activation, relu_case(),
                activation(
                    "leaky_relu", [](const Tensor& x) { return leaky_relu(x, 0.2); },
                    [](double x) { return x > 0 ? x : 0.2 * x; }, normal().away_from({0})),
                activation("sigmoid", sigmoid, sigmoid_of),
                activation("tanh", tanh, [](double x) { return std::tanh(x); }),
                activation("silu", silu, [](double x) { return x * sigmoid_of(x); }),
                activation(
                    "gelu", [](const Tensor& x) { return gelu(x); }, gelu_of),
                activation(
                    "gelu_tanh", [](const Tensor& x) { return gelu(x, "tanh"); }, gelu_tanh_of),
                activation(
                    "softplus", [](const Tensor& x) { return softplus(x, 2); },
                    [](double x) { return std::log1p(std::exp(2 * x)) / 2; }),
                activation(
                    "softplus_threshold", [](const Tensor& x) { return softplus(x, 1, 20); },
                    [](double x) { return x; }, uniform(21, 50)));

TEST(Activation, relu_keeps_nan_and_its_gradient_at_zero_is_zero) {
  Tensor x = tensor({-kInf, -0.0, 0.0, 2.0, kInf, std::nan("")}).requires_grad_();
  const Tensor y = relu(x);
  y.backward(ones_like(y));
  const RefArray v = values_of(y), g = values_of(x.grad());
  EXPECT_EQ(std::vector<double>(v.values.begin(), v.values.end() - 1),
            (std::vector<double>{0, 0, 0, 2, kInf}));
  EXPECT_TRUE(std::isnan(v[5]));
  EXPECT_EQ(g.values, (std::vector<double>{0, 0, 0, 1, 1, 1}));
}

TEST(Activation, extreme_inputs_do_not_overflow) {
  const Tensor x = tensor({-1000., 1000.});
  EXPECT_EQ(values_of(sigmoid(x)).values, (std::vector<double>{0, 1}));
  EXPECT_EQ(values_of(softplus(x)).values, (std::vector<double>{0, 1000}));
  EXPECT_EQ(values_of(silu(x)).values, (std::vector<double>{0, 1000}));
  EXPECT_EQ(values_of(gelu(x)).values, (std::vector<double>{0, 1000}));
}

// The forward and the backward kernel, and nothing else.
TEST(Activation, backward_is_one_launch) {
  for (auto op : {relu, sigmoid, tanh, silu}) {
    Tensor x = tensor({-1., 2.}).requires_grad_();
    const Tensor y = op(x), g = tensor({1., 1.});
    const int64_t before = stats().launches;
    y.backward(g);
    EXPECT_EQ(stats().launches - before, 1);
  }
}

TEST(Activation, gelu_refuses_an_unknown_approximation) {
  try {
    gelu(tensor({1.}), "fast");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "E-ARG");
    EXPECT_STREQ(e.what(), "gelu: approximate argument must be either none or tanh, got 'fast'");
  }
}

TEST(Activation, relu_in_place) {
  Tensor x = tensor({-1., 2.});
  EXPECT_TRUE(x.relu_().is_same(x));
  EXPECT_EQ(values_of(x).values, (std::vector<double>{0, 2}));

  Tensor w = tensor({-1., 2.}).requires_grad_();
  Tensor y = w * 3;
  y.relu_();
  y.backward(tensor({1., 1.}));
  EXPECT_EQ(values_of(y).values, (std::vector<double>{0, 6}));
  EXPECT_EQ(values_of(w.grad()).values, (std::vector<double>{0, 3}));
}

}  // namespace
}  // namespace gradus::optest
