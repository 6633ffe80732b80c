#include <gradus/ops/compare.h>
#include <gradus/ops/factories.h>

#include <cmath>
#include <limits>

#include "op_case.h"

namespace gradus::optest {
namespace {

using Bools = std::vector<double>;
constexpr double kInf = std::numeric_limits<double>::infinity();

template <class R>
OpCase comparison(const char* name, Tensor (*op)(const Tensor&, const Tensor&), R reference) {
  // Whole numbers, so that there are equal ones.
  const Input input{integers(0, 3, kFloat32)};
  return {.name = name,
          .shapes = pointwise_shapes(2),
          .inputs = {{input.values, false}, {input.values, false}},
          .forward = [op](const Tensors& x) { return op(x[0], x[1]); },
          .reference = pointwise(reference),
          .dtypes = kAllTypes};
}
template <class R>
OpCase with_number(const char* name, Tensor (*op)(const Tensor&, Scalar), R reference) {
  return {.name = name,
          .shapes = pointwise_shapes(1),
          .inputs = {{integers(0, 3, kFloat32), false}},
          .forward = [op](const Tensors& x) { return op(x[0], 1); },
          .reference = pointwise([reference](double a) { return reference(a, 1.0); }),
          .dtypes = kAllTypes};
}

GRADUS_OP_CASES(compare, comparison("eq", eq, [](double a, double b) { return a == b; }),
                comparison("ne", ne, [](double a, double b) { return a != b; }),
                comparison("lt", lt, [](double a, double b) { return a < b; }),
                comparison("le", le, [](double a, double b) { return a <= b; }),
                comparison("gt", gt, [](double a, double b) { return a > b; }),
                comparison("ge", ge, [](double a, double b) { return a >= b; }),
                comparison("logical_and", logical_and, [](double a, double b) { return a != 0 && b != 0; }),
                comparison("logical_or", logical_or, [](double a, double b) { return a != 0 || b != 0; }),
                comparison("logical_xor", logical_xor,
                           [](double a, double b) { return (a != 0) != (b != 0); }),
                with_number("eq_number", eq, [](double a, double b) { return a == b; }),
                with_number("ne_number", ne, [](double a, double b) { return a != b; }),
                with_number("lt_number", lt, [](double a, double b) { return a < b; }),
                with_number("le_number", le, [](double a, double b) { return a <= b; }),
                with_number("gt_number", gt, [](double a, double b) { return a > b; }),
                with_number("ge_number", ge, [](double a, double b) { return a >= b; }));

TEST(Compare, nan_compares_false_with_everything) {
  const Tensor x = tensor({std::nan("")});
  for (auto op : {+[](const Tensor&a, const Tensor&b) { return a == b; },
                  +[](const Tensor&a, const Tensor&b) { return a < b; },
                  +[](const Tensor&a, const Tensor&b) { return a <= b; },
                  +[](const Tensor&a, const Tensor&b) { return a > b; },
                  +[](const Tensor&a, const Tensor&b) { return a >= b; }})
    EXPECT_EQ(values_of(op(x, x)).values, Bools{0});
  EXPECT_EQ(values_of(x != x).values, Bools{1});
}

TEST(Compare, operands_promote) {
  const Tensor i = tensor(std::vector<int64_t>{0, 1, 2});
  EXPECT_EQ(values_of(i > 0.5).values, (Bools{0, 1, 1}));
  EXPECT_EQ(values_of(i == tensor({0.5, 1., 2.})).values, (Bools{0, 1, 1}));
  EXPECT_EQ((i > 0.5).dtype(), kBool);
  const Tensor bytes = tensor(std::vector<uint8_t>{44, 255});
  EXPECT_EQ(values_of(bytes == 300).values, (Bools{0, 0}));  // not 300 modulo 256
  EXPECT_EQ(values_of(bytes > -1).values, (Bools{1, 1}));
}

TEST(Compare, tests_of_special_values) {
  const Tensor x = tensor({-kInf, -1., 0., kInf, std::nan("")});
  EXPECT_EQ(values_of(isnan(x)).values, (Bools{0, 0, 0, 0, 1}));
  EXPECT_EQ(values_of(isinf(x)).values, (Bools{1, 0, 0, 1, 0}));
  EXPECT_EQ(values_of(isfinite(x)).values, (Bools{0, 1, 1, 0, 0}));
  EXPECT_EQ(values_of(logical_not(x)).values, (Bools{0, 0, 1, 0, 0}));
  const Tensor i = tensor(std::vector<int64_t>{0, 7});
  EXPECT_EQ(values_of(isnan(i)).values, (Bools{0, 0}));
  EXPECT_EQ(values_of(isinf(i)).values, (Bools{0, 0}));
  EXPECT_EQ(values_of(isfinite(i)).values, (Bools{1, 1}));
  EXPECT_EQ(values_of(logical_not(i)).values, (Bools{1, 0}));
}

TEST(Compare, closeness) {
  const Tensor a = tensor({1., 1., kInf, kInf, std::nan(""), 1e10}),
               b = tensor({1. + 1e-6, 1.1, kInf, -kInf, std::nan(""), kInf});
  EXPECT_EQ(values_of(isclose(a, b)).values, (Bools{1, 0, 1, 0, 0, 0}));
  EXPECT_EQ(values_of(isclose(a, b, 1e-5, 1e-8, true)).values, (Bools{1, 0, 1, 0, 1, 0}));
  EXPECT_FALSE(allclose(a, b));
  EXPECT_TRUE(allclose(tensor({1., 2.}), tensor({1., 2.00001})));
  EXPECT_FALSE(allclose(tensor({1., std::nan("")}), tensor({1., 2.})));
  const Tensor i = tensor(std::vector<int64_t>{100, 200}), j = tensor(std::vector<int64_t>{100, 201});
  EXPECT_EQ(values_of(isclose(i, j, 0, 0.5)).values, (Bools{1, 0}));
  EXPECT_EQ(values_of(isclose(i, j, 0, 1)).values, (Bools{1, 1}));
}

TEST(Compare, equality_of_tensors) {
  EXPECT_TRUE(equal(tensor({1., 2.}), tensor({1., 2.})));
  EXPECT_FALSE(equal(tensor({1., 2.}), tensor({1., 3.})));
  EXPECT_FALSE(equal(tensor({1., 2.}), tensor({1., 2., 3.})));
  EXPECT_FALSE(equal(tensor({std::nan("")}), tensor({std::nan("")})));
  EXPECT_TRUE(equal(empty({0, 2}), empty({0, 2})));
  try {
    equal(tensor({1.}), tensor(std::vector<int64_t>{1}));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "E-DTYPE");
  }
}

TEST(Compare, shapes_that_do_not_broadcast_are_refused) {
  try {
    (void)(empty({2, 3}) < empty({2}));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "E-SHAPE");
    EXPECT_EQ(std::string(e.what()).substr(0, 3), "lt:");
  }
}

TEST(Compare, AG_07_comparisons_have_no_history) {
  const Tensor x = tensor({1., 2.}).requires_grad_();
  EXPECT_FALSE((x > 1).requires_grad());
  EXPECT_FALSE(eq(x, x).requires_grad());
  EXPECT_FALSE(isclose(x, x).requires_grad());
}

}  // namespace
}  // namespace gradus::optest
