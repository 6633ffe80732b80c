#include <gradus/ops/arithmetic.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/rounding.h>

#include <cmath>
#include <limits>

#include "op_case.h"

namespace gradus::optest {
namespace {

using Ints = std::vector<int64_t>;

// Draws keep away from the steps, which are at whole and, for round, at half numbers.
const Draw kBetweenSteps =
    uniform(-3, 3).away_from({-3, -2.5, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 2.5, 3});

OpCase step(const char* name, Tensor (*op)(const Tensor&), double (*reference)(double)) {
  return {.name = name,
          .shapes = pointwise_shapes(1),
          .inputs = {{kBetweenSteps}},
          .forward = [op](const Tensors& x) { return op(x[0]); },
          .reference = pointwise(reference),
          .dtypes = kFloatingTypes | dtypes(kInt32, kInt64)};
}

double remainder_of(double a, double b) { return a - b * std::floor(a / b); }

// a in (0.1, 0.9) b + whole multiples: away from the jumps.
template <class F, class R>
OpCase division(const char* name, F op, R reference) {
  return {.name = name,
          .shapes = pointwise_shapes(2),
          .inputs = {{uniform(2.2, 3.8)}, {uniform(2, 2.1)}},
          .forward = [op](const Tensors& x) { return op(x[0] * -1, x[1]); },
          .reference = pointwise([reference](double a, double b) { return reference(-a, b); }),
          .dtypes = dtypes(kFloat32, kFloat64),
          .tolerance = 8};
}

GRADUS_OP_CASES(rounding, step("floor", floor, std::floor), step("ceil", ceil, std::ceil),
                step("round", round, std::nearbyint), step("trunc", trunc, std::trunc),
                step("sign", sign, [](double x) { return x > 0   ? 1.0
                                                         : x < 0 ? -1.0
                                                                 : 0.0; }),
                division(
                    "div_floor", [](const Tensor& a, const Tensor& b) { return div(a, b, Rounding::floor); },
                    [](double a, double b) { return std::floor(a / b); }),
                division(
                    "div_trunc", [](const Tensor& a, const Tensor& b) { return div(a, b, Rounding::trunc); },
                    [](double a, double b) { return std::trunc(a / b); }),
                division(
                    "remainder", [](const Tensor& a, const Tensor& b) { return remainder(a, b); },
                    remainder_of),
                division(
                    "fmod", [](const Tensor& a, const Tensor& b) { return fmod(a, b); },
                    [](double a, double b) { return std::fmod(a, b); }));

TEST(Rounding, round_takes_halves_to_even) {
  EXPECT_EQ(values_of(round(tensor({-2.5, -1.5, -0.5, 0.5, 1.5, 2.5}))).values,
            (std::vector<double>{-2, -2, 0, 0, 2, 2}));
}

TEST(Rounding, sign_of_nan_is_zero) {
  EXPECT_EQ(values_of(sign(tensor({std::nan("")}))).values, std::vector<double>{0});
}

TEST(Rounding, NUM_17_integer_division_and_remainder_with_negative_numbers) {
  const Tensor a = tensor(Ints{-3, 3, -3, 3}), b = tensor(Ints{2, 2, -2, -2});
  EXPECT_EQ(floor_divide(a, b).to_vector<int64_t>(), (Ints{-2, 1, 1, -2}));
  EXPECT_EQ(floor_divide(a, b).dtype(), kInt64);
  const Tensor c = tensor(Ints{-5, 5}), d = tensor(Ints{3, -3});
  EXPECT_EQ(floor_divide(c, d).to_vector<int64_t>(), (Ints{-2, -2}));
  EXPECT_EQ(remainder(c, d).to_vector<int64_t>(), (Ints{1, -1}));
  EXPECT_EQ(fmod(c, d).to_vector<int64_t>(), (Ints{-2, 2}));
  const Tensor true_quotient = div(tensor(Ints{-3}), 2);
  EXPECT_EQ(true_quotient.dtype(), kFloat32);
  EXPECT_EQ(values_of(true_quotient).values, std::vector<double>{-1.5});
  EXPECT_EQ(div(tensor(Ints{-3}), 2, Rounding::trunc).to_vector<int64_t>(), Ints{-1});
  EXPECT_EQ(values_of(remainder(tensor({-5.5}), 3)).values, std::vector<double>{0.5});
}

TEST(Rounding, NUM_17_integer_division_by_zero_is_an_error_not_a_signal) {
  const Tensor one = tensor(Ints{7, 1}), zero = tensor(Ints{1, 0});
  for (auto op : {+[](const Tensor&a, const Tensor&b) { return floor_divide(a, b); },
                  +[](const Tensor&a, const Tensor&b) { return div(a, b, Rounding::trunc); },
                  +[](const Tensor&a, const Tensor&b) { return remainder(a, b); },
                  +[](const Tensor&a, const Tensor&b) { return fmod(a, b); }}) {
    try {
      op(one, zero);
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), "E-DIVISION");
    }
  }
  try {
    floor_divide(one, 0);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()),
              "floor_divide: integer division by zero; the divisor has shape []\n"
              "  hint: convert the operands with .to(kFloat32), or mask the zeros with where()");
  }
}

TEST(Rounding, the_least_integer_by_minus_one_wraps) {
  const int64_t least = std::numeric_limits<int64_t>::min();
  const Tensor a = tensor(Ints{least}), b = tensor(Ints{-1});
  EXPECT_EQ(floor_divide(a, b).to_vector<int64_t>(), Ints{least});
  EXPECT_EQ(remainder(a, b).to_vector<int64_t>(), Ints{0});
}

TEST(Rounding, floor_division_of_floats_rounds_the_exact_quotient) {
  const Tensor y = div(tensor({1., 5., -5., 16777217., 1., 0.}, {.dtype = kFloat64}),
                       tensor({0.1, 2., 2., 1., 0., 0.}, {.dtype = kFloat64}), Rounding::floor);
  const RefArray v = values_of(y);
  EXPECT_EQ(v[0], 9);  // 0.1 in binary is a little more than 0.1
  EXPECT_EQ(v[1], 2);
  EXPECT_EQ(v[2], -3);
  EXPECT_EQ(v[3], 16777217);
  EXPECT_EQ(v[4], std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(v[5]));
}

}  // namespace
}  // namespace gradus::optest
