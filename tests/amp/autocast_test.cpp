#include <gradus/gradus.h>
#include <gradus/tensor/node.h>
#include <gtest/gtest.h>

#include <thread>

#include "support/expect_error.h"

namespace gradus {
namespace {

using amp::autocast;
constexpr DeviceType kCpu = DeviceType::cpu, kSim = DeviceType::sim;

Tensor weight() { return ones({2, 2}).requires_grad_(); }

TEST(Autocast, scopes_nest_and_are_undone) {
  EXPECT_FALSE(amp::is_autocast_enabled(kCpu));
  EXPECT_EQ(amp::get_autocast_dtype(kCpu), kBFloat16);
  EXPECT_EQ(amp::get_autocast_dtype(kSim), kFloat16);
  {
    autocast outer(kCpu);
    EXPECT_TRUE(amp::is_autocast_enabled(kCpu));
    EXPECT_FALSE(amp::is_autocast_enabled(kSim));
    {
      autocast half(kCpu, {.dtype = kFloat16});
      EXPECT_EQ(matmul(ones({2, 2}), ones({2, 2})).dtype(), kFloat16);
      autocast island(kCpu, {.enabled = false});
      EXPECT_FALSE(amp::is_autocast_enabled(kCpu));
      EXPECT_EQ(matmul(ones({2, 2}), ones({2, 2})).dtype(), kFloat32);
    }
    EXPECT_EQ(matmul(ones({2, 2}), ones({2, 2})).dtype(), kBFloat16);
  }
  EXPECT_EQ(matmul(ones({2, 2}), ones({2, 2})).dtype(), kFloat32);
}

TEST(Autocast, an_error_ends_the_scope_and_leaves_it_on_inside) {
  autocast scope(kCpu);
  EXPECT_THROW(matmul(ones({2, 3}), ones({2, 3})), Error);
  EXPECT_TRUE(amp::is_autocast_enabled(kCpu));
}

TEST(Autocast, is_of_one_thread) {
  autocast scope(kCpu);
  bool elsewhere = true;
  std::thread([&] { elsewhere = amp::is_autocast_enabled(kCpu); }).join();
  EXPECT_FALSE(elsewhere);
}

TEST(Autocast, takes_half_types_only) {
  EXPECT_GRADUS_ERROR(autocast(kCpu, {.dtype = kFloat64}), "E-DTYPE",
                      "autocast: on cpu it casts to float16 or bfloat16, got float64");
}

TEST(Autocast, leaves_float64_and_integers_alone) {
  autocast scope(kCpu);
  EXPECT_EQ(matmul(ones({2, 2}, kFloat64), ones({2, 2}, kFloat64)).dtype(), kFloat64);
  EXPECT_EQ(prod(ones({2}, kInt64)).dtype(), kInt64);
}

TEST(Autocast, gradients_come_back_in_the_parameters_dtype) {
  Tensor w = weight(), x = full({3, 2}, 0.5).requires_grad_();
  Tensor loss;
  {
    autocast scope(kCpu);
    const Tensor h = linear(x, w);
    EXPECT_EQ(h.dtype(), kBFloat16);
    loss = mse_loss(h, zeros({3, 2}));
    EXPECT_EQ(loss.dtype(), kFloat32);
    loss.backward();  // inside too: nothing is cast there
  }
  EXPECT_EQ(w.grad().dtype(), kFloat32);
  EXPECT_EQ(x.grad().dtype(), kFloat32);
  EXPECT_EQ(w.grad().to_vector<float>(), std::vector<float>(4, 0.5F));  // 3 (rows) * 2 / 6 * 1 * 0.5
}

TEST(AutocastCache, a_parameter_is_converted_once_in_a_scope) {
  Tensor w = weight();
  const Tensor x = ones({1, 2}, kBFloat16);
  autocast scope(kCpu);
  linear(x, w);
  EXPECT_EQ(ops::autocast_cache_size(), 1U);
  const int64_t before = stats().launches;
  linear(x, w);
  EXPECT_EQ(stats().launches, before + 1);
  {
    autocast inner(kCpu, {.cache_enabled = false});
    linear(x, w);
    EXPECT_EQ(stats().launches, before + 3);
  }
}

TEST(AutocastCache, ends_with_the_outermost_scope) {
  Tensor w = weight();
  {
    autocast outer(kCpu);
    {
      autocast inner(kCpu);
      linear(ones({1, 2}), w);
    }
    EXPECT_EQ(ops::autocast_cache_size(), 1U);
  }
  EXPECT_EQ(ops::autocast_cache_size(), 0U);
}

TEST(AutocastCache, a_copy_made_under_no_grad_has_no_gradient_to_withhold) {
  Tensor w = weight();
  {
    autocast scope(kCpu);
    {
      NoGradGuard no_grad;
      linear(ones({1, 2}), w);
    }
    linear(ones({1, 2}), w).sum().backward();
  }
  ASSERT_TRUE(w.grad().defined());
  EXPECT_EQ(w.grad().to_vector<float>(), std::vector<float>(4, 1));
}

TEST(AutocastCache, sees_changes_in_place_and_by_an_optimizer) {
  Tensor w = weight();
  optim::SGD sgd({w}, {.lr = 1});
  autocast scope(kCpu);
  linear(ones({1, 2}), w).sum().backward();
  sgd.step();  // 1 - 1
  EXPECT_EQ(linear(ones({1, 2}), w).to_vector<float>(), (std::vector<float>{0, 0}));
  {
    NoGradGuard no_grad;
    w.fill_(3);
  }
  EXPECT_EQ(linear(ones({1, 2}), w).to_vector<float>(), (std::vector<float>{6, 6}));
  w.set_data(full({2, 2}, 2.0));
  EXPECT_EQ(linear(ones({1, 2}), w).to_vector<float>(), (std::vector<float>{4, 4}));
}

TEST(AutocastCache, micro_batches_of_one_scope_add_up) {
  Tensor w = weight();
  {
    autocast scope(kCpu);
    for (int i = 1; i <= 3; ++i) (linear(full({1, 2}, static_cast<double>(i)), w).sum()).backward();
  }
  EXPECT_EQ(w.grad().to_vector<float>(), std::vector<float>(4, 6));
}

TEST(Autocast, costs_no_launch_when_off) {
  const Tensor x = ones({4, 4});
  const int64_t before = stats().launches;
  matmul(x, x);
  EXPECT_EQ(stats().launches, before + 1);
}

TEST(Autocast, binary_cross_entropy_is_refused_where_float16_would_overflow) {
  const Tensor p = full({2}, 0.5, {.dtype = kBFloat16});
  {
    autocast scope(kCpu);
    EXPECT_EQ(binary_cross_entropy(p, p).dtype(), kFloat32);
  }
  autocast scope(kSim);
  const Tensor q = p.to(Device(kSim));
  EXPECT_GRADUS_ERROR(binary_cross_entropy(q, q), "E-AUTOCAST",
                      "binary_cross_entropy: it and nn::BCELoss are unsafe to autocast on sim:0");
  EXPECT_EQ(binary_cross_entropy_with_logits(q, q).dtype(), kFloat32);
}

TEST(Autocast, half_activations_pass_a_float32_layer_norm) {
  nn::LayerNorm norm(4);
  Tensor x = arange(8).to(kFloat32).reshape({2, 4}).requires_grad_();
  const Tensor exact = norm(x.detach());
  autocast scope(kCpu);
  const Tensor y = norm(x.to(kBFloat16));
  EXPECT_EQ(y.dtype(), kBFloat16);
  EXPECT_LE((y.to(kFloat32) - exact).abs().max().item<float>(), 0.01F);
  y.to(kFloat32).sum().backward();
  EXPECT_EQ(norm->weight.grad().dtype(), kFloat32);
}

// A custom operation that wants float32 in both directions.
struct HalveBackward : Node {
  const char* name() const override { return "HalveBackward"; }
  TensorList backward(const TensorList& g) override {
    seen = g[0].dtype();
    return {g[0] / 2};
  }
  static inline DType seen = kBool;
};
Tensor halve(const Tensor& x) {
  const Tensor wide = x.to(kFloat32);
  Tensor y;
  {
    NoGradGuard no_grad;
    ops::AutocastOff off;
    y = wide / 2;
  }
  if (wants_grad(wide)) record<HalveBackward>(y, wide);
  return y;
}

TEST(Autocast, AMP_07_a_disabled_island_and_a_custom_operation) {
  Tensor w = weight();
  const Tensor x = ones({1, 2});
  autocast scope(kCpu);
  const Tensor h = linear(x, w);
  EXPECT_EQ(h.dtype(), kBFloat16);
  {
    autocast off(kCpu, {.enabled = false});
    EXPECT_GRADUS_ERROR(linear(h, w), "E-DTYPE", "but got bfloat16, float32");
    EXPECT_EQ(linear(h.to(kFloat32), w).dtype(), kFloat32);
  }
  EXPECT_EQ(linear(x, w).dtype(), kBFloat16);
  for (const bool inside : {true, false}) {
    autocast maybe(kCpu, {.enabled = inside});
    Tensor in = ones({2}, kBFloat16).requires_grad_();
    const Tensor y = halve(in);
    EXPECT_EQ(y.dtype(), kFloat32);
    y.sum().backward();
    EXPECT_EQ(HalveBackward::seen, kFloat32);
    EXPECT_EQ(in.grad().dtype(), kBFloat16);
  }
}

TEST(Autocast, replicas_of_data_parallel_cast_too) {
  nn::DataParallel model([] { return std::make_shared<nn::LinearImpl>(2, 2); },
                         {Device("sim:0"), Device("sim:1")});
  model.to(Device("sim:0"));
  autocast scope(kSim, {.dtype = kBFloat16});
  EXPECT_EQ(model(ones({4, 2}, kFloat32, Device("sim:0"))).dtype(), kBFloat16);
}

}  // namespace
}  // namespace gradus
