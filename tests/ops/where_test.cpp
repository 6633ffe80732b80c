#include <gradus/ops/arithmetic.h>
#include <gradus/ops/compare.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/unary.h>
#include <gradus/ops/where.h>
#include <gradus/tensor/node.h>

#include <cmath>

#include "op_case.h"

namespace gradus::optest {
namespace {

using Doubles = std::vector<double>;

GRADUS_OP_CASES(where,
                OpCase{.name = "where",
                       .shapes = pointwise_shapes(3),
                       .inputs = {{booleans()}, {normal()}, {normal()}},
                       .forward = [](const Tensors& x) { return where(x[0], x[1], x[2]); },
                       .reference = pointwise([](double c, double a, double b) { return c != 0 ? a : b; }),
                       .dtypes = kAllTypes,
                       .tolerance = 0},
                OpCase{.name = "where_number",
                       .shapes = pointwise_shapes(2),
                       .inputs = {{booleans()}, {normal()}},
                       .forward = [](const Tensors& x) { return where(x[0], 0.5, x[1]); },
                       .reference = pointwise([](double c, double a) { return c != 0 ? 0.5 : a; }),
                       .tolerance = 0},
                OpCase{.name = "masked_fill",
                       .shapes = pointwise_shapes(2),
                       .inputs = {{normal()}, {booleans()}},
                       .forward = [](const Tensors& x) { return masked_fill(x[0], x[1], -2.5); },
                       .reference = pointwise([](double a, double m) { return m != 0 ? -2.5 : a; }),
                       .tolerance = 0},
                OpCase{.name = "lerp",
                       .shapes = pointwise_shapes(3),
                       .inputs = {{normal()}, {normal()}, {uniform(0, 1)}},
                       .forward = [](const Tensors& x) { return lerp(x[0], x[1], x[2]); },
                       .reference = pointwise([](double a, double b, double w) { return a + w * (b - a); }),
                       .tolerance = 8},
                OpCase{.name = "lerp_number",
                       .shapes = pointwise_shapes(2),
                       .inputs = {{normal()}, {normal()}},
                       .forward = [](const Tensors& x) { return lerp(x[0], x[1], 0.25); },
                       .reference = pointwise([](double a, double b) { return a + 0.25 * (b - a); })},
                OpCase{.name = "addcmul",
                       .shapes = pointwise_shapes(3),
                       .inputs = {{normal()}, {normal()}, {normal()}},
                       .forward = [](const Tensors& x) { return addcmul(x[0], x[1], x[2], 0.5); },
                       .reference = pointwise([](double x, double a, double b) { return x + 0.5 * a * b; }),
                       .tolerance = 8});

// PyTorch's documented trap: the gradient of the branch not taken is 0 * inf.
TEST(Where, AG_05_gradient_behind_a_mask) {
  Tensor a = tensor({100., -1.}).requires_grad_();
  where(a <= 0, exp(a), a + 1).sum().backward();
  RefArray g = values_of(a.grad());
  EXPECT_TRUE(std::isnan(g[0])) << g[0];
  EXPECT_NEAR(g[1], 0.3679, 1e-4);

  a.set_grad({});
  const Tensor inside = where(a <= 0, a, zeros_like(a));
  where(a <= 0, exp(inside), a + 1).sum().backward();
  g = values_of(a.grad());
  EXPECT_EQ(g[0], 1);
  EXPECT_NEAR(g[1], 0.3679, 1e-4);
}

TEST(Where, dtypes_promote_and_numbers_do_not_widen) {
  const Tensor c = tensor({0., 1.}) != 0, i = tensor(std::vector<int64_t>{1, 2});
  EXPECT_EQ(where(c, i, tensor({0.5, 0.5})).dtype(), kFloat32);
  EXPECT_EQ(where(c, i, 7).dtype(), kInt64);
  EXPECT_EQ(where(c, i, 0.5).dtype(), kFloat32);
  EXPECT_EQ(values_of(where(c, i, 0.5)).values, (Doubles{0.5, 2}));
  EXPECT_EQ(where(c, tensor({1., 2.}, {.dtype = kFloat16}), 0.5).dtype(), kFloat16);
  EXPECT_EQ(masked_fill(i, c, 9.7).dtype(), kInt64);
  EXPECT_EQ(values_of(masked_fill(i, c, 9)).values, (Doubles{1, 9}));
}

TEST(Where, a_mask_must_be_bool) {
  try {
    where(tensor({1.}), tensor({1.}), tensor({2.}));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "E-DTYPE");
    EXPECT_STREQ(e.what(),
                 "where: expected condition to be bool, got float32\n  hint: compare it: condition != 0");
  }
}

}  // namespace
}  // namespace gradus::optest
