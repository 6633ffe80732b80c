#include <gradus/nn/clip_grad.h>
#include <gradus/ops/factories.h>

#include <cmath>
#include <limits>

#include "support/expect_error.h"

namespace gradus::nn::utils {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Tensor with_grad(const std::vector<float>& grad) {
  Tensor p = zeros({static_cast<int64_t>(grad.size())}).requires_grad_();
  p.set_grad(tensor(grad));
  return p;
}

void expect_near(const Tensor& t, std::initializer_list<double> want) {
  const auto got = t.to_vector<double>();
  ASSERT_EQ(got.size(), want.size());
  size_t i = 0;
  for (double w : want) {
    EXPECT_TRUE(std::fabs(got[i] - w) <= 1e-5) << "element " << i << ": " << got[i] << ", expected " << w;
    ++i;
  }
}

TEST(ClipGrad, NUM_25_the_norm_is_of_all_parameters_together) {
  const Tensor many = with_grad(std::vector<float>(100, 1));
  EXPECT_EQ(clip_grad_norm_({many}, 1).item<float>(), 10);
  EXPECT_NEAR(many.grad().to_vector<float>()[99], 0.1, 1e-6);
  const Tensor a = with_grad({3}), b = with_grad({4});
  EXPECT_EQ(clip_grad_norm_({a, b}, 1).item<float>(), 5);
  expect_near(a.grad(), {0.6});
  expect_near(b.grad(), {0.8});
}

TEST(ClipGrad, NUM_25_small_and_zero_gradients_stay) {
  const Tensor small = with_grad({0.3f, 0.4f});
  EXPECT_FLOAT_EQ(clip_grad_norm_({small}, 1).item<float>(), 0.5f);
  EXPECT_EQ(small.grad().to_vector<float>(), (std::vector<float>{0.3f, 0.4f}));
  const Tensor zero = with_grad({0, 0});
  EXPECT_EQ(clip_grad_norm_({zero}, 1).item<float>(), 0);
  EXPECT_EQ(zero.grad().to_vector<float>(), (std::vector<float>{0, 0}));
}

TEST(ClipGrad, NUM_25_infinite_gradients) {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor p = with_grad({inf, 1});
  EXPECT_EQ(
      ::gradus::testing::error_of([&] { clip_grad_norm_({p}, 1, 2, true); }),
      "E-NONFINITE: clip_grad_norm_: the total norm of order 2 of the gradients is non-finite (inf), so they "
      "cannot be clipped\n  hint: look for the inf or NaN, or skip this step");
  EXPECT_EQ(p.grad().to_vector<float>(), (std::vector<float>{inf, 1}));  // nothing was scaled
  EXPECT_EQ(clip_grad_norm_({p}, 1).item<double>(), kInf);
  EXPECT_TRUE(std::isnan(p.grad().to_vector<float>()[0]));
  EXPECT_EQ(p.grad().to_vector<float>()[1], 0);
}

TEST(ClipGrad, NUM_25_a_negative_bound_and_no_gradients) {
  const Tensor p = with_grad({3, 4});
  EXPECT_EQ(::gradus::testing::error_of([&] { clip_grad_norm_({p}, -1); }),
            "E-ARG: clip_grad_norm_: max_norm must not be negative, got -1\n"
            "  hint: a negative bound would turn the gradients around");
  EXPECT_EQ(p.grad().to_vector<float>(), (std::vector<float>{3, 4}));
  EXPECT_EQ(clip_grad_norm_({ones({2}).requires_grad_()}, 1).item<float>(), 0);
  EXPECT_EQ(clip_grad_norm_({}, 1).item<float>(), 0);
}

TEST(ClipGrad, other_orders_and_values) {
  const Tensor p = with_grad({3, -4}), none = ones({1}).requires_grad_();
  EXPECT_EQ(clip_grad_norm_({p, none}, 2, kInf).item<float>(), 4);
  expect_near(p.grad(), {1.5, -2});
  EXPECT_FALSE(none.grad().defined());
  const Tensor q = with_grad({3, -4});
  EXPECT_EQ(clip_grad_norm_({q}, 7, 1).item<float>(), 7);
  clip_grad_value_({q, none}, 0.5);
  EXPECT_EQ(q.grad().to_vector<float>(), (std::vector<float>{0.5, -0.5}));
  EXPECT_GRADUS_ERROR(clip_grad_value_({q}, -1), "E-ARG", "must not be negative, got -1");
}

}  // namespace
}  // namespace gradus::nn::utils
