#include <gradus/ops/arithmetic.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/reduce.h>
#include <gradus/tensor/node.h>

#include "op_case.h"
#include "support/expect_error.h"

namespace gradus::optest {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;
using testing::error_of;

using TensorFunction = Tensor (*)(const Tensor&, const Tensor&);
using NumberFunction = Tensor (*)(const Tensor&, Scalar);

OpCase of_tensors(const char* name, TensorFunction f, double (*reference)(double, double), DTypeSet dtypes,
                  const Draw& second = integers(1, 4, kFloat32)) {
  return {.name = name,
          .shapes = pointwise_shapes(2),
          .inputs = {{integers(4, 9, kFloat32)}, {second}},
          .forward = [f](const Tensors& x) { return f(x[0], x[1]); },
          .reference = pointwise(reference),
          .dtypes = dtypes};
}
OpCase with_number(const char* name, NumberFunction f, Scalar number, double (*reference)(double),
                   DTypeSet dtypes = kNumericTypes) {
  return {.name = name,
          .shapes = pointwise_shapes(1),
          .inputs = {{integers(4, 9, kFloat32)}},
          .forward = [f, number](const Tensors& x) { return f(x[0], number); },
          .reference = pointwise(reference),
          .dtypes = dtypes};
}

GRADUS_OP_CASES(arithmetic,
                of_tensors(
                    "add", add, [](double a, double b) { return a + b; }, kNumericTypes),
                of_tensors(
                    "sub", sub, [](double a, double b) { return a - b; }, kNumericTypes),
                of_tensors(
                    "mul", mul, [](double a, double b) { return a * b; }, kNumericTypes),
                of_tensors(
                    "div", div, [](double a, double b) { return a / b; }, kFloatingTypes, uniform(0.5, 2)),
                with_number("add_number", add, 3, [](double x) { return x + 3; }),
                with_number("sub_number", sub, 3, [](double x) { return x - 3; }),
                with_number("rsub_number", rsub, 10, [](double x) { return 10 - x; }),
                with_number("mul_number", mul, 3, [](double x) { return x * 3; }),
                with_number(
                    "div_number", div, 0.8, [](double x) { return x / 0.8; }, kFloatingTypes));

TEST(Arithmetic, bools_add_and_multiply_but_do_not_subtract) {
  const Tensor a = tensor({true, true, false}), b = tensor({true, false, false});
  EXPECT_EQ((a + b).dtype(), kBool);
  EXPECT_EQ((a + b).to_vector<int64_t>(), (Ints{1, 1, 0}));
  EXPECT_EQ((a * b).to_vector<int64_t>(), (Ints{1, 0, 0}));
  const auto refusal = [](const char* types) {
    return str("E-DTYPE: sub: Subtraction, the `-` operator, with a bool tensor is not supported, got ",
               types, "\n  hint: invert a mask with logical_not(), compare two with logical_xor()");
  };
  Tensor x = zeros({3}), mask = tensor({true, true, false});
  EXPECT_EQ(error_of([&] { a - b; }), refusal("bool and bool"));
  EXPECT_EQ(error_of([&] { a - true; }), refusal("bool and bool"));
  EXPECT_EQ(error_of([&] { 1 - a; }), refusal("bool and int64"));
  EXPECT_EQ(error_of([&] { x.sub_(b); }), refusal("float32 and bool"));
  EXPECT_EQ(error_of([&] { mask.sub_(true); }), refusal("bool and bool"));
  EXPECT_EQ(x.to_vector<float>(), (Floats{0, 0, 0}));
  EXPECT_EQ(mask.to_vector<int64_t>(), (Ints{1, 1, 0}));
}

TEST(Arithmetic, an_error_in_place_names_the_operation_that_was_called) {
  Tensor x = tensor({1, 2});
  EXPECT_EQ(error_of([&] { x.sub_(0.5); }),
            "E-DTYPE: sub_: result type float32 can't be cast to the desired output type int64\n"
            "  hint: use the out-of-place operation");
}

TEST(Arithmetic, histories_name_the_operation) {
  const Tensor x = ones({2}).requires_grad_();
  EXPECT_STREQ((x + 1).grad_fn()->name(), "AddBackward");
  EXPECT_STREQ((x - 1).grad_fn()->name(), "SubBackward");
}

TEST(Arithmetic, subtracting_in_place_has_the_right_gradient) {
  const Tensor w = tensor({1., 2.}).requires_grad_();
  Tensor y = w * 3;
  y.sub_(1).mul_(w);  // (3 w - 1) w
  EXPECT_EQ(y.to_vector<float>(), (Floats{2, 10}));
  y.sum().backward();
  EXPECT_EQ(w.grad().to_vector<float>(), (Floats{5, 11}));
}

TEST(Arithmetic, an_expanded_tensor_is_not_changed_in_place) {
  const Tensor one = zeros({1});
  Tensor x = one.expand({3});
  const std::string refusal =
      "unsupported operation: more than one element of the written-to tensor refers to a single memory "
      "location; it has shape [3] and strides [0]\n  hint: clone() it first";
  EXPECT_EQ(error_of([&] { x.add_(1); }), "E-INPLACE: add: " + refusal);
  EXPECT_EQ(error_of([&] { x.mul_(ones({3})); }), "E-INPLACE: mul: " + refusal);
  EXPECT_EQ(error_of([&] { x.copy_(tensor({1., 2., 3.})); }), "E-INPLACE: copy: " + refusal);
  {
    NoGradGuard no_grad;
    EXPECT_EQ(error_of([&] { x.add_(1); }), "E-INPLACE: add: " + refusal);
  }
  EXPECT_EQ(one.item<float>(), 0);
}

}  // namespace
}  // namespace gradus::optest
