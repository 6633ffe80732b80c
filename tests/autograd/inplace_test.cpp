// In-place operations: what is refused, before anything is changed, and what works.
#include <gradus/autograd/backward.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/unary.h>
#include <gradus/ops/view.h>
#include <gradus/tensor/node.h>
#include <gtest/gtest.h>
#include <support/expect_error.h>

namespace gradus {
namespace {

using Doubles = std::vector<double>;

class Inplace : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(Node::live_count(), 0); }

  template <class F>
  static std::string refusal(const F& f) {
    try {
      f();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), "E-INPLACE");
      return e.what();
    }
    ADD_FAILURE() << "not refused";
    return "";
  }
};

TEST_F(Inplace, AG_01_a_leaf_that_requires_grad) {
  Tensor x = ones({3}).requires_grad_();
  const Doubles before{1, 1, 1};
  EXPECT_EQ(
      refusal([&] { x.add_(1); }),
      "add: a leaf Variable that requires grad is being used in an in-place operation; its shape is [3]\n"
      "  hint: do it inside a NoGradGuard, or use the out-of-place operation");
  EXPECT_EQ(x.to_vector<double>(), before);
  EXPECT_EQ(refusal([&] { x.slice(0, 0, 1).add_(1); }),
            "add: a view of a leaf Variable that requires grad is being used in an in-place operation; the "
            "view's shape is [1]\n"
            "  hint: do it inside a NoGradGuard, or use the out-of-place operation");
  EXPECT_EQ(x.to_vector<double>(), before);
  refusal([&] { x[0].fill_(5); });
  EXPECT_EQ(x.to_vector<double>(), before);
  for (auto change :
       {+[](Tensor& t) { t.mul_(2); }, +[](Tensor& t) { t.sub_(t.detach()); }, +[](Tensor& t) { t.div_(2); },
        +[](Tensor& t) { t.zero_(); }, +[](Tensor& t) { t.relu_(); }, +[](Tensor& t) { t.sqrt_(); },
        +[](Tensor& t) { t.clamp_(5); }, +[](Tensor& t) { t.copy_(zeros({3})); }}) {
    refusal([&] { change(x); });
    EXPECT_EQ(x.to_vector<double>(), before);
  }
  {
    NoGradGuard no_grad;
    x.add_(1);
  }
  EXPECT_EQ(x.to_vector<double>(), (Doubles{2, 2, 2}));
  EXPECT_TRUE(x.is_leaf());
  EXPECT_TRUE(x.requires_grad());
}

TEST_F(Inplace, a_saved_tensor_that_was_changed_is_noticed) {
  Tensor x = tensor({2., 3.}).requires_grad_();
  Tensor y = x * 2;
  const Tensor z = (y * y).sum();
  y.add_(1);
  EXPECT_EQ(
      refusal([&] { z.backward(); }),
      "MulBackward: one of the variables needed for gradient computation has been modified by an inplace "
      "operation: the input of shape [2] is at version 1, expected version 0\n"
      "  hint: use the out-of-place operation, or clone() the tensor before changing it");
}

TEST_F(Inplace, a_saved_output_and_a_change_through_detach_are_noticed) {
  Tensor x = tensor({2., 3.}).requires_grad_();
  Tensor y = exp(x);
  y.detach().zero_();
  EXPECT_EQ(
      refusal([&] { y.sum().backward(); }),
      "ExpBackward: one of the variables needed for gradient computation has been modified by an inplace "
      "operation: the output of shape [2] is at version 1, expected version 0\n"
      "  hint: use the out-of-place operation, or clone() the tensor before changing it");
}

// PyTorch computes the gradient with the new data and says nothing.
TEST_F(Inplace, data_that_was_set_between_forward_and_backward_is_noticed) {
  Tensor w = tensor({2., 3.}).requires_grad_();
  const Tensor y = (w * w).sum();
  w.set_data(tensor({5., 7.}));
  EXPECT_EQ(refusal([&] { y.backward(); }),
            "MulBackward: one of the variables needed for gradient computation was given other data by "
            "set_data(): the input of shape [2]\n"
            "  hint: call set_data(), or module.to(), before forward() or after backward()");
  (w * w).sum().backward();
  EXPECT_EQ(w.grad().to_vector<double>(), (Doubles{10, 14}));
  w.set_data(tensor({1., 1.}));  // what nothing needs any more
}

TEST_F(Inplace, results_change_in_place_with_the_right_gradient) {
  Tensor x = tensor({2.}).requires_grad_(), w = tensor({5.}).requires_grad_();
  Tensor y = x * 1;
  y.mul_(w);          // 5 x
  y.add_(y);          // 10 x
  y.sub_(w).div_(2);  // 5 x - w / 2
  EXPECT_EQ(y.to_vector<double>(), Doubles{7.5});
  y.backward();
  EXPECT_EQ(x.grad().to_vector<double>(), Doubles{5});
  EXPECT_EQ(w.grad().to_vector<double>(), Doubles{2 - 0.5});
}

TEST_F(Inplace, an_operation_in_place_that_never_runs_backward_is_freed) {
  Tensor x = tensor({2.}).requires_grad_(), w = tensor({5.}).requires_grad_();
  Tensor y = x * 1;
  y.mul_(w);
}

TEST_F(Inplace, a_constant_becomes_part_of_the_graph) {
  Tensor w = tensor({5.}).requires_grad_();
  Tensor y = tensor({3.});
  y.mul_(w);
  EXPECT_TRUE(y.requires_grad());
  y.backward();
  EXPECT_EQ(w.grad().to_vector<double>(), Doubles{3});
}

TEST_F(Inplace, a_constant_copied_into_a_result_leaves_its_history) {
  Tensor x = tensor({2., 3.}).requires_grad_();
  Tensor y = x * 5;
  y.copy_(tensor({7., 8.}));
  EXPECT_TRUE(y.requires_grad());
  EXPECT_STREQ(y.grad_fn()->name(), "CopyBackward");
  (y * y).sum().backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (Doubles{0, 0}));
}

TEST_F(Inplace, a_copy_shares_the_gradient_with_its_source_alone) {
  Tensor x = tensor({2., 3.}).requires_grad_(), s = tensor({4.}).requires_grad_();
  Tensor y = x * 5;
  y.copy_(s);  // broadcasts
  (y * y).sum().backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (Doubles{0, 0}));
  EXPECT_EQ(s.grad().to_vector<double>(), Doubles{16});
  Tensor z = tensor({1., 2.});
  z.copy_(x.to(kFloat64));
  EXPECT_EQ(z.dtype(), kFloat32);
  z.sum().backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (Doubles{1, 1}));
  Tensor n = tensor({1, 2});  // integers have no gradient
  n.copy_(x);
  EXPECT_FALSE(n.requires_grad());
  EXPECT_EQ(n.to_vector<double>(), (Doubles{2, 3}));
}

TEST_F(Inplace, a_copy_of_a_part_of_the_target_itself) {
  Tensor x = tensor({{1., 2.}, {3., 4.}}).requires_grad_();
  Tensor y = x * 5;
  y.copy_(y[1]);
  EXPECT_EQ(y.to_vector<double>(), (Doubles{15, 20, 15, 20}));
  y.sum().backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (Doubles{0, 0, 10, 10}));
}

TEST_F(Inplace, views_in_a_graph_are_refused) {
  Tensor x = tensor({1., 2.}).requires_grad_();
  Tensor y = x * 2;
  Tensor v = y.slice(0, 0, 1);
  EXPECT_EQ(
      refusal([&] { v.add_(1); }),
      "add: an in-place operation on a view of shape [1] of a tensor of shape [2] that is part of a graph "
      "is not supported\n  hint: build the result out of place, for example with where(), cat() or stack()");
  EXPECT_EQ(y.to_vector<double>(), (Doubles{2, 4}));
  Tensor constant = tensor({1., 2.});
  refusal([&] { constant[0].mul_(x[0]); });  // would make the base part of the graph
  EXPECT_EQ(constant.to_vector<double>(), (Doubles{1, 2}));
}

TEST_F(Inplace, a_view_made_before_its_base_changed_is_refused) {
  Tensor x = tensor({1., 2.}).requires_grad_();
  Tensor y = x * 2;
  const Tensor old_view = y[0];
  y.add_(1);
  EXPECT_EQ(
      refusal([&] { old_view * 2; }),
      "autograd: a view of shape [] is used after its base was changed in place (version 1, the view was "
      "made at 0)\n  hint: make the view again after the in-place operation");
  y[0].backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (Doubles{2, 0}));
}

TEST_F(Inplace, views_of_constants_change_freely) {
  Tensor x = zeros({2, 2});
  x[1].add_(3);
  x.t()[0].add_(1);
  EXPECT_EQ(x.to_vector<double>(), (Doubles{1, 0, 4, 3}));
}

TEST_F(Inplace, operands_that_overlap_are_read_before_they_are_written) {
  Tensor x = tensor({{1., 2.}, {3., 4.}});
  x.add_(x.t());
  EXPECT_EQ(x.to_vector<double>(), (Doubles{2, 5, 5, 8}));
}

TEST_F(Inplace, shapes_and_dtypes_stay) {
  Tensor x = zeros({2});
  try {
    x.add_(zeros({3, 2}));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "E-SHAPE");
    EXPECT_STREQ(e.what(),
                 "add_: output with shape [2] doesn't match the broadcast shape [3, 2]\n"
                 "  hint: use the out-of-place operation");
  }
  Tensor i = zeros({2}, {.dtype = kInt64});
  try {
    i.add_(0.5);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "E-DTYPE");
  }
}

TEST(DetachInPlace, every_handle_forgets_its_history) {
  Tensor x = ones({2}).requires_grad_();
  Tensor y = x * 2.0;
  const Tensor same = y;
  y.detach_();
  EXPECT_TRUE(same.is_leaf() && !same.requires_grad());
  y.copy_(x);  // and may be made anew
  same.sum().backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{1, 1}));
  Tensor view = (x * 2.0).narrow(0, 0, 1);
  EXPECT_EQ(testing::error_of([&] { view.detach_(); }),
            "E-INPLACE: detach_: can't detach views in-place\n  hint: use detach()");
}

}  // namespace
}  // namespace gradus
