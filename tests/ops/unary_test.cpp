#include <gradus/ops/arithmetic.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/unary.h>
#include <gradus/tensor/node.h>

#include <cmath>
#include <limits>

#include "op_case.h"

namespace gradus::optest {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

template <class F>
OpCase unary_case(const char* name, Draw draw, Tensor (*op)(const Tensor&), F reference) {
  return {.name = name,
          .shapes = pointwise_shapes(1),
          .inputs = {{draw}},
          .forward = [op](const Tensors& x) { return op(x[0]); },
          .reference = pointwise(reference)};
}

OpCase on_integers_too(OpCase c) {
  c.dtypes = kNumericTypes;
  c.inputs[0].values.high = 5;  // fits all of them
  return c;
}

GRADUS_OP_CASES(
    unary, on_integers_too(unary_case("abs", uniform(0.1, 5), abs, [](double x) { return std::fabs(x); })),
    unary_case("abs_of_both_signs", normal().away_from({0}), abs, [](double x) { return std::fabs(x); }),
    unary_case("neg", normal(), neg, [](double x) { return -x; }),
    on_integers_too(unary_case("square", uniform(0, 5), square, [](double x) { return x * x; })),
    unary_case("reciprocal", uniform(0.5, 3), reciprocal, [](double x) { return 1 / x; }),
    unary_case("exp", normal(), exp, [](double x) { return std::exp(x); }),
    unary_case("expm1", normal(), expm1, [](double x) { return std::expm1(x); }),
    unary_case("log", uniform(0.3, 4), log, [](double x) { return std::log(x); }),
    unary_case("log1p", uniform(-0.5, 4), log1p, [](double x) { return std::log1p(x); }),
    unary_case("sqrt", uniform(0.3, 4), sqrt, [](double x) { return std::sqrt(x); }),
    unary_case("rsqrt", uniform(0.3, 4), rsqrt, [](double x) { return 1 / std::sqrt(x); }),
    unary_case("sin", normal(), sin, [](double x) { return std::sin(x); }),
    unary_case("cos", normal(), cos, [](double x) { return std::cos(x); }),
    unary_case("erf", normal(), erf, [](double x) { return std::erf(x); }));

TEST(Unary, integers_become_float32_where_the_result_is_real) {
  const Tensor x = tensor(std::vector<int64_t>{0, 1});
  EXPECT_EQ(exp(x).dtype(), kFloat32);
  EXPECT_EQ(values_of(exp(x)).values, (std::vector<double>{1, static_cast<double>(std::exp(1.0f))}));
  EXPECT_EQ(neg(x).dtype(), kInt64);
  EXPECT_EQ(values_of(neg(x)).values, (std::vector<double>{0, -1}));
}

TEST(Unary, unsigned_and_extreme_integers_wrap) {
  EXPECT_EQ(neg(tensor(std::vector<uint8_t>{0, 1, 255})).to_vector<int64_t>(),
            (std::vector<int64_t>{0, 255, 1}));
  const int64_t least = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(neg(tensor(std::vector<int64_t>{least})).to_vector<int64_t>(), std::vector<int64_t>{least});
}

TEST(Unary, bool_is_refused) {
  const Tensor x = tensor_of(RefArray({2}, 1), kBool);
  for (auto op : {neg, abs}) {
    try {
      op(x);
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), "E-NOT-IMPLEMENTED");
    }
  }
}

TEST(Unary, AG_05_sqrt_at_zero_has_an_infinite_gradient) {
  Tensor x = zeros({1}).requires_grad_();
  sqrt(x).backward();
  EXPECT_EQ(values_of(x.grad()).values, std::vector<double>{kInf});
}

TEST(Unary, large_tensors_are_split_among_threads) {
  RefArray x({300, 1001});
  for (int64_t i = 0; i < x.numel(); ++i) x[i] = static_cast<double>(i % 977);
  const RefArray y = values_of(square(tensor_of(x, kFloat32)));
  for (int64_t i = 0; i < x.numel(); ++i) ASSERT_EQ(y[i], x[i] * x[i]) << i;
}

TEST(Unary, sqrt_in_place) {
  Tensor x = tensor({4., 9.});
  const uint32_t version = x.version();
  EXPECT_TRUE(x.sqrt_().is_same(x));
  EXPECT_EQ(values_of(x).values, (std::vector<double>{2, 3}));
  EXPECT_GT(x.version(), version);

  Tensor w = tensor({4., 9.}).requires_grad_();
  Tensor y = w * 4;
  y.sqrt_();
  y.backward(tensor({1., 1.}));
  EXPECT_EQ(values_of(y).values, (std::vector<double>{4, 6}));
  EXPECT_EQ(values_of(w.grad()).values, (std::vector<double>{0.5, static_cast<double>(1 / 3.f)}));
  try {
    tensor(std::vector<int64_t>{4}).sqrt_();
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "E-DTYPE");
  }
}

}  // namespace
}  // namespace gradus::optest
