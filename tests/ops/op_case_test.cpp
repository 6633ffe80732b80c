// The harness itself: a wrong forward, gradient, stride or leak must be noticed.
#include "op_case.h"

#include <gmock/gmock.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/common.h>
#include <gradus/ops/factories.h>
#include <gradus/tensor/node.h>

namespace gradus::optest {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct TripleBackward : Node {
  explicit TripleBackward(double slope, bool twice) : factor(slope), twice_differentiable(twice) {}
  const char* name() const override { return "TripleBackward"; }
  bool differentiable() const override { return twice_differentiable; }
  TensorList backward(const TensorList& g) override { return {mul(g[0], factor)}; }
  double factor;
  bool twice_differentiable;
};

// 3 x, with a gradient that may be wrong.
Tensor triple(const Tensor& x, double slope = 3, bool twice = true) {
  Tensor y = [&] {
    NoGradGuard no_grad;
    return x * 3;
  }();
  if (wants_grad(x)) record<TripleBackward>(y, x, slope, twice);
  return y;
}

OpCase good_case() {
  return {.name = "triple",
          .shapes = pointwise_shapes(1),
          .inputs = {{normal()}},
          .forward = [](const Tensors& x) { return triple(x[0]); },
          .reference = pointwise([](double x) { return 3 * x; })};
}

TEST(OpCaseHarness, accepts_a_right_operation) { EXPECT_THAT(failures(good_case(), Device()), IsEmpty()); }

TEST(OpCaseHarness, sees_a_wrong_forward) {
  OpCase c = good_case();
  c.reference = pointwise([](double x) { return 3.001 * x; });
  EXPECT_THAT(failures(c, Device()), AllOf(Contains(HasSubstr("triple [forward float32] at [2, 3, 2, 2]")),
                                           Contains(HasSubstr("[forward float64]"))));
}

TEST(OpCaseHarness, sees_a_wrong_shape) {
  OpCase c = good_case();
  c.reference = [](const RefArrays& x) { return RefArray(Shape{x[0].numel()}); };
  EXPECT_THAT(failures(c, Device()), Contains(HasSubstr("shape [3, 4], expected [12]")));
}

TEST(OpCaseHarness, sees_a_wrong_gradient) {
  OpCase c = good_case();
  c.forward = [](const Tensors& x) { return triple(x[0], 3.1); };
  EXPECT_THAT(failures(c, Device()),
              Contains(AllOf(HasSubstr("triple [gradient] at [3, 4]"), HasSubstr("analytically 3.1"))));
}

TEST(OpCaseHarness, sees_a_gradient_that_is_wrong_in_one_dtype) {
  OpCase c = good_case();
  c.forward = [](const Tensors& x) { return triple(x[0], x[0].dtype() == kFloat16 ? 3.1 : 3); };
  const auto found = failures(c, Device());
  EXPECT_THAT(found, Contains(HasSubstr("[gradient float16, input 0]")));
  EXPECT_THAT(found, Not(Contains(HasSubstr("float32"))));
}

TEST(OpCaseHarness, sees_ignored_strides) {
  OpCase c = good_case();
  c.forward = [](const Tensors& x) {  // reads what lies at the address in row-major order
    return triple(from_blob(x[0].raw_data(), x[0].sizes(), x[0].dtype()));
  };
  c.inputs[0].differentiable = false;
  const auto found = failures(c, Device());
  EXPECT_THAT(found, Contains(HasSubstr("[forward, transposed]")));
  EXPECT_THAT(found, Contains(HasSubstr("[forward, sliced]")));
  EXPECT_THAT(found, Contains(HasSubstr("[forward, channels-last]")));
  EXPECT_THAT(found, Not(Contains(HasSubstr("[forward float32]"))));
}

TEST(OpCaseHarness, sees_an_unexpected_history) {
  OpCase c = good_case();
  c.inputs[0].differentiable = false;
  EXPECT_THAT(failures(c, Device()), Contains(HasSubstr("requires grad though no input gets one")));
}

TEST(OpCaseHarness, second_derivatives_are_right_or_refused) {
  OpCase c = good_case();
  c.forward = [](const Tensors& x) { return triple(x[0], 3, false); };
  EXPECT_THAT(failures(c, Device()), Contains(HasSubstr("the second derivative is not implemented")));
  c.twice_differentiable = false;
  EXPECT_THAT(failures(c, Device()), IsEmpty());
  c = good_case();
  c.twice_differentiable = false;
  EXPECT_THAT(failures(c, Device()), Contains(HasSubstr("create_graph was not refused")));
}

TEST(OpCaseHarness, sees_leaked_nodes_and_exceptions) {
  Tensors kept;
  OpCase c = good_case();
  c.forward = [&](const Tensors& x) {
    kept.push_back(triple(x[0]));
    return kept.back();
  };
  EXPECT_THAT(failures(c, Device()), Contains(HasSubstr("[nodes]")));
  kept.clear();
  c.forward = [](const Tensors&) -> Tensor { GRADUS_FAIL("E-SHAPE", "triple: no"); };
  EXPECT_THAT(failures(c, Device()), Contains(HasSubstr("[forward] at [3, 4] on cpu: threw triple: no")));
}

TEST(OpCaseHarness, draws_are_what_they_say) {
  OpCase c = good_case();
  c.shapes = {{{64}}};
  c.inputs = {{uniform(-1, 1).away_from({0, 0.5})}};
  c.forward = [](const Tensors& x) {
    const RefArray values = values_of(x[0]);
    for (double v : values.values)
      GRADUS_CHECK(std::abs(v) >= 0.09 && std::abs(v - 0.5) >= 0.09, "E-TEST", "drew ", v);
    return triple(x[0]);
  };
  EXPECT_THAT(failures(c, Device()), IsEmpty());
}

}  // namespace
}  // namespace gradus::optest
