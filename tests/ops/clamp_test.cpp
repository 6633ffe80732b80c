#include <gradus/ops/arithmetic.h>
#include <gradus/ops/clamp.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/reduce.h>
#include <gradus/tensor/node.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "op_case.h"

namespace gradus::optest {
namespace {

using Doubles = std::vector<double>;
constexpr double kInf = std::numeric_limits<double>::infinity();

OpCase extremum(const char* name, Tensor (*op)(const Tensor&, const Tensor&),
                double (*reference)(double, double)) {
  OpCase c{.name = name,
           .shapes = pointwise_shapes(2),
           .inputs = {{distinct()}, {uniform(-1, 1)}},
           .forward = [op](const Tensors& x) { return op(x[0], x[1]); },
           .reference = pointwise(reference),
           .dtypes = kFloatingTypes | dtypes(kInt64),
           .tolerance = 0};
  return c;
}

OpCase clamp_case(const char* name, std::optional<Scalar> min, std::optional<Scalar> max) {
  return {.name = name,
          .shapes = pointwise_shapes(1),
          .inputs = {{normal().away_from({-0.5, 0.75})}},
          .forward = [=](const Tensors& x) { return clamp(x[0], min, max); },
          .reference = pointwise([=](double x) {
            if (min) x = std::max(x, min->to<double>());
            return max ? std::min(x, max->to<double>()) : x;
          }),
          .tolerance = 1};
}

GRADUS_OP_CASES(clamp, extremum("minimum", minimum, [](double a, double b) { return std::min(a, b); }),
                extremum("maximum", maximum, [](double a, double b) { return std::max(a, b); }),
                clamp_case("clamp", -0.5, 0.75), clamp_case("clamp_min", -0.5, {}),
                clamp_case("clamp_max", {}, 0.75));

TEST(Clamp, no_gradient_at_the_bounds_outside_and_at_nan) {
  Tensor x = tensor({-1., -0.5, 0., 0.5, 1., std::nan("")}).requires_grad_();
  const Tensor y = clamp(x, -0.5, 0.5);
  y.sum().backward();
  const RefArray v = values_of(y);
  EXPECT_EQ(Doubles(v.values.begin(), v.values.end() - 1), (Doubles{-0.5, -0.5, 0, 0.5, 0.5}));
  EXPECT_TRUE(std::isnan(v[5]));
  EXPECT_EQ(values_of(x.grad()).values, (Doubles{0, 0, 1, 0, 0, 0}));
}

TEST(Clamp, the_upper_bound_wins_where_they_cross) {
  EXPECT_EQ(values_of(clamp(tensor({-5., 0., 5.}), 2, 1)).values, (Doubles{1, 1, 1}));
}

TEST(Clamp, integers) {
  const Tensor x = tensor(std::vector<uint8_t>{0, 100, 255});
  EXPECT_EQ(values_of(clamp(x, -5, 300)).values, (Doubles{0, 100, 255}));
  EXPECT_EQ(values_of(clamp(x, 10)).values, (Doubles{10, 100, 255}));
  EXPECT_EQ(clamp(x, 10).dtype(), kUInt8);
  EXPECT_EQ(clamp(x, 0.5).dtype(), kFloat32);
  EXPECT_EQ(clamp(tensor(std::vector<int32_t>{-7, 7}), {}, 3).to_vector<int64_t>(),
            (std::vector<int64_t>{-7, 3}));
}

TEST(Clamp, refusals) {
  try {
    clamp(tensor({1.}), {});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "E-ARG");
  }
  try {
    tensor(std::vector<int64_t>{1}).clamp_(0.5);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "E-DTYPE");
  }
}

TEST(Clamp, in_place) {
  Tensor x = tensor({-1., 2.});
  x.clamp_(0, 1);
  EXPECT_EQ(values_of(x).values, (Doubles{0, 1}));
  Tensor w = tensor({-1., 0.25}).requires_grad_();
  Tensor y = w * 2;
  y.clamp_(0, 1).sum().backward();
  EXPECT_EQ(values_of(w.grad()).values, (Doubles{0, 2}));
}

TEST(Extremum, ties_share_the_gradient_and_nan_wins) {
  for (auto op : {minimum, maximum}) {
    Tensor a = tensor({1., std::nan(""), 0.}).requires_grad_(),
           b = tensor({1., 0., std::nan("")}).requires_grad_();
    const Tensor y = op(a, b);
    y.sum().backward();
    EXPECT_TRUE(std::isnan(values_of(y)[1]) && std::isnan(values_of(y)[2]));
    EXPECT_EQ(values_of(a.grad())[0], 0.5);
    EXPECT_EQ(values_of(b.grad())[0], 0.5);
  }
  EXPECT_EQ(values_of(maximum(tensor({-kInf}), tensor({kInf}))).values, Doubles{kInf});
}

}  // namespace
}  // namespace gradus::optest
