// Where operations are recorded and where not.
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/view.h>
#include <gradus/tensor/node.h>
#include <gtest/gtest.h>

#include <thread>

namespace gradus {
namespace {

TEST(GradMode, no_grad_records_nothing_and_ends_with_its_scope) {
  const Tensor x = ones({2}).requires_grad_();
  {
    NoGradGuard no_grad;
    EXPECT_FALSE((x * 2).requires_grad());
    {
      EnableGradGuard enable;
      EXPECT_TRUE((x * 2).requires_grad());
    }
    EXPECT_FALSE((x * 2).requires_grad());
  }
  EXPECT_TRUE((x * 2).requires_grad());
  AutoGradMode off(false);
  EXPECT_FALSE((x * 2).requires_grad());
}

TEST(GradMode, is_a_threads_own) {
  NoGradGuard no_grad;
  bool enabled = false;
  std::thread([&] { enabled = GradMode::is_enabled(); }).join();
  EXPECT_TRUE(enabled);
}

TEST(InferenceMode, its_tensors_never_enter_a_graph) {
  Tensor inside, view;
  const Tensor w = ones({2}).requires_grad_();
  {
    InferenceMode inference;
    EXPECT_FALSE(GradMode::is_enabled());
    inside = w * 2;
    EXPECT_FALSE(inside.requires_grad());
  }
  EXPECT_TRUE(GradMode::is_enabled());
  view = inside[0];
  for (const Tensor& t : {inside, view, inside.detach()}) {
    try {
      w.slice(0, 0, 1) * t;
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), "E-INFERENCE");
    }
  }
  try {
    w* inside;
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(),
                 "MulBackward: Inference tensors cannot be saved for backward; one has shape [2]\n"
                 "  hint: clone() it outside InferenceMode to make a normal tensor");
  }
  EXPECT_THROW(inside.requires_grad_(), Error);
  EXPECT_TRUE((w * inside.clone()).requires_grad());
}

TEST(Leaf, requires_grad_is_for_leaves) {
  Tensor x = ones({2}).requires_grad_();
  EXPECT_TRUE(x.is_leaf());
  Tensor y = x * 2;
  EXPECT_FALSE(y.is_leaf());
  y.requires_grad_();  // it does already
  EXPECT_THROW(y.requires_grad_(false), Error);
  EXPECT_FALSE(y.detach().requires_grad());
  EXPECT_TRUE(y.detach().is_alias_of(y));
  x.requires_grad_(false);
  EXPECT_FALSE((x * 2).requires_grad());
}

}  // namespace
}  // namespace gradus
