#include <gradus/autograd/gradcheck.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/unary.h>
#include <gradus/ops/view.h>
#include <gradus/tensor/node.h>
#include <gtest/gtest.h>

namespace gradus::autograd {
namespace {

using Inputs = std::vector<Tensor>;

Tensor input(std::initializer_list<double> values) {
  return tensor(values, {.dtype = kFloat64}).requires_grad_();
}

// x^2, with a derivative that is `error` off, and one of `second` off in the derivative's own.
struct WrongSquareBackward : Node {
  explicit WrongSquareBackward(double error) : off(error) {}
  const char* name() const override { return "WrongSquareBackward"; }
  TensorList backward(const TensorList& g) override {
    return {g[0] * (saved(0) * 2) + (g[0].detach() * off)};
  }
  double off;
};

Tensor wrong_square(const Tensor& x, double error) {
  Tensor y = square(x.detach());
  if (wants_grad(x)) record<WrongSquareBackward>(y, x, error).save(x);
  return y;
}

TEST(Gradcheck, accepts_right_gradients) {
  const Tensor a = input({0.3, -1.2}), b = input({0.7});
  EXPECT_TRUE(gradcheck([](const Inputs& x) { return sin(x[0]) * x[1]; }, {a, b}));
  EXPECT_TRUE(gradgradcheck([](const Inputs& x) { return sin(x[0]) * x[1]; }, {a, b}));
  EXPECT_TRUE(gradcheck([](const Inputs& x) { return Inputs{x[0] + x[1], exp(x[0])}; }, {a, b}));
  EXPECT_EQ(a.to_vector<double>(), (std::vector<double>{0.3, -1.2}));  // restored
}

TEST(Gradcheck, refuses_wrong_ones_and_says_where) {
  const Tensor a = input({0.5, 1});
  try {
    gradcheck([](const Inputs& x) { return wrong_square(x[0], 0.25); }, {a});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "E-GRADCHECK");
    const std::string text = e.what();
    EXPECT_EQ(text.substr(0, 71), "gradcheck: Jacobian mismatch for output 0 with respect to input 0: d y[")
        << text;
    EXPECT_NE(text.find("analytically 1.25"), std::string::npos) << text;
  }
}

// The first derivative is right; its own gradient lacks a part.
TEST(Gradcheck, second_derivatives) {
  struct Half : Node {
    const char* name() const override { return "HalfBackward"; }
    TensorList backward(const TensorList& g) override { return {g[0] * (saved(0).detach() * 2)}; }
  };
  auto f = [](const Inputs& x) {
    Tensor y = square(x[0].detach());
    if (wants_grad(x[0])) record<Half>(y, x[0]).save(x[0]);
    return y;
  };
  const Tensor a = input({0.5, 1});
  EXPECT_TRUE(gradcheck(f, {a}));
  EXPECT_THROW(gradgradcheck(f, {a}), Error);
}

TEST(Gradcheck, nan_fails) {
  const Tensor a = input({-1});
  EXPECT_THROW(gradcheck([](const Inputs& x) { return log(x[0]); }, {a}), Error);
}

TEST(Gradcheck, needs_float64_and_something_to_check) {
  try {
    gradcheck([](const Inputs& x) { return x[0] * 2; }, {tensor({1.}).requires_grad_()});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "E-DTYPE");
  }
  try {
    gradcheck([](const Inputs& x) { return x[0] * 2; }, {tensor({1.})});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "E-REQUIRES-GRAD");
  }
}

TEST(Gradcheck, strided_inputs_and_functions_that_ignore_one) {
  const Tensor base = tensor({{0.1, 0.2, 0.3}, {0.4, 0.5, 0.6}}, {.dtype = kFloat64});
  Tensor a = base.t().detach().requires_grad_();
  const Tensor b = input({1});
  EXPECT_TRUE(gradcheck([](const Inputs& x) { return exp(x[0]); }, {a, b}));
}

}  // namespace
}  // namespace gradus::autograd
