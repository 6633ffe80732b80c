#include <gradus/autograd/backward.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/pow.h>
#include <gradus/tensor/node.h>

#include <cmath>
#include <limits>

#include "op_case.h"

namespace gradus::optest {
namespace {

using Doubles = std::vector<double>;
using Ints = std::vector<int64_t>;

OpCase power(const char* name, Scalar exponent, Draw draw) {
  return {.name = name,
          .shapes = pointwise_shapes(1),
          .inputs = {{draw}},
          .forward = [exponent](const Tensors& x) { return pow(x[0], exponent); },
          .reference = pointwise([exponent](double x) { return std::pow(x, exponent.to<double>()); })};
}

OpCase on_integers_too(OpCase c) {
  c.dtypes = kNumericTypes;
  return c;
}

GRADUS_OP_CASES(pow, power("pow_0", 0, normal()), on_integers_too(power("pow_1", 1, uniform(0, 3))),
                on_integers_too(power("pow_2", 2, uniform(0, 3))), power("pow_2_of_both_signs", 2, normal()),
                power("pow_3", 3, uniform(-1.5, 1.5)), on_integers_too(power("pow_4", 4, uniform(0, 2))),
                power("pow_half", 0.5, uniform(0.3, 2)), power("pow_negative", -1.5, uniform(0.5, 2)),
                OpCase{.name = "pow_tensor",
                       .shapes = pointwise_shapes(2),
                       .inputs = {{uniform(0.4, 2)}, {uniform(-2, 2)}},
                       .forward = [](const Tensors& x) { return pow(x[0], x[1]); },
                       .reference = pointwise([](double a, double b) { return std::pow(a, b); })},
                OpCase{.name = "number_to_a_tensor",
                       .shapes = pointwise_shapes(1),
                       .inputs = {{normal()}},
                       .forward = [](const Tensors& x) { return pow(2.5, x[0]); },
                       .reference = pointwise([](double x) { return std::pow(2.5, x); }),
                       .tolerance = 16,  // bfloat16 rounds 2.5^x's gradient once more
                       .gradient_tolerance = 32});

TEST(Pow, AG_11_three_derivatives_of_a_cube) {
  for (DType dtype : {kFloat32, kFloat64}) {
    const Tensor x = tensor(2.0, {.dtype = dtype}).requires_grad_();
    const Tensor y = pow(x, 3);
    const Tensor first = autograd::grad({y}, {x}, {}, true, true)[0];
    const Tensor second = autograd::grad({first}, {x}, {}, true, true)[0];
    const Tensor third = autograd::grad({second}, {x}, {}, true, true)[0];
    EXPECT_EQ(first.item<double>(), 12);
    EXPECT_EQ(second.item<double>(), 12);
    EXPECT_EQ(third.item<double>(), 6);
  }
  EXPECT_EQ(Node::live_count(), 0);
}

TEST(Pow, derivatives_of_a_cube_at_zero) {
  const Tensor x = tensor(0.0).requires_grad_();
  const Tensor first = autograd::grad({pow(x, 3)}, {x}, {}, true, true)[0];
  const Tensor second = autograd::grad({first}, {x}, {}, true, true)[0];
  const Tensor third = autograd::grad({second}, {x}, {}, true, true)[0];
  EXPECT_EQ(first.item<double>(), 0);
  EXPECT_EQ(second.item<double>(), 0);
  EXPECT_EQ(third.item<double>(), 6);
}

TEST(Pow, integers) {
  const Tensor x = tensor(Ints{-2, 0, 3});
  EXPECT_EQ(pow(x, 3).to_vector<int64_t>(), (Ints{-8, 0, 27}));
  EXPECT_EQ(pow(x, 0).to_vector<int64_t>(), (Ints{1, 1, 1}));
  EXPECT_EQ(pow(x, 5).dtype(), kInt64);
  EXPECT_EQ(pow(x, 0.5).dtype(), kFloat32);
  EXPECT_EQ(pow(tensor(Ints{1, -1, -1, 2}), tensor(Ints{-5, -3, -2, -1})).to_vector<int64_t>(),
            (Ints{1, -1, 1, 0}));
  EXPECT_EQ(pow(2, tensor(Ints{10, 62})).to_vector<int64_t>(), (Ints{1024, int64_t{1} << 62}));
  try {
    pow(x, -1);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "E-ARG");
  }
}

TEST(Pow, special_cases) {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  const RefArray y = values_of(pow(tensor({nan, 1., -8., 0., 0.}), tensor({0., nan, 1. / 3, -1., 0.})));
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[1], 1);
  EXPECT_TRUE(std::isnan(y[2]));
  EXPECT_EQ(y[3], inf);
  EXPECT_EQ(y[4], 1);
}

TEST(Pow, gradients_at_zero_are_finite) {
  Tensor x = tensor({0., 0.}).requires_grad_(), e = tensor({0., 2.}).requires_grad_();
  const Tensor y = pow(x, e);
  y.backward(ones_like(y));
  EXPECT_EQ(values_of(x.grad()).values, (Doubles{0, 0}));
  EXPECT_EQ(values_of(e.grad()).values, (Doubles{0, 0}));
}

}  // namespace
}  // namespace gradus::optest
