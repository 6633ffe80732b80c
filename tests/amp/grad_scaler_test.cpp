#include <gradus/gradus.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/expect_error.h"

namespace gradus {
namespace {

using amp::GradScaler;
constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<Device> devices() { return {Device("cpu"), Device("sim")}; }

struct Training {
  explicit Training(Device device = {}, std::initializer_list<float> start = {0, 0})
      : p(zeros({static_cast<int64_t>(start.size())}).to(device)) {
    int64_t i = 0;
    for (const float v : start) p.select(0, i++).fill_(v);
    p.requires_grad_();
  }
  // The gradient is g, times the scale.
  void backward(GradScaler& scaler, double g) {
    p.set_grad({});
    scaler.scale((p * g).sum()).backward();
  }
  Tensor p;
};

TEST(GradScaler, defaults_are_PyTorchs) {
  const GradScaler scaler;
  EXPECT_TRUE(scaler.is_enabled());
  EXPECT_EQ(scaler.get_scale(), 65536);
  EXPECT_EQ(scaler.get_growth_factor(), 2);
  EXPECT_EQ(scaler.get_backoff_factor(), 0.5);
  EXPECT_EQ(scaler.get_growth_interval(), 2000);
}

TEST(GradScaler, AMP_01_skipped_steps_leave_all_but_the_scale_alone) {
  for (const Device device : devices()) {
    Training s(device, {1});
    optim::Adam adam({s.p}, {.lr = 0.1});
    optim::StepLR scheduler(adam, 3000);
    GradScaler scaler;
    int scheduled = 0;
    const auto iteration = [&](double g) {
      s.backward(scaler, g);
      const bool stepped = scaler.step(adam);
      scaler.update();
      if (stepped) scheduler.step(), ++scheduled;
    };
    iteration(kInf);
    EXPECT_EQ(s.p.to_vector<float>(), std::vector<float>{1});
    EXPECT_FALSE(adam.state_dict().contains("state.0.step"));
    EXPECT_EQ(scaler.get_scale(), 32768);
    iteration(std::nan(""));
    EXPECT_EQ(scaler.get_scale(), 16384);
    EXPECT_EQ(scaler.skipped_steps(), 2);
    const int clean = device.is_cpu() ? 2000 : 0;  // sim's queue makes it long, and the rule is the same
    for (int i = 0; i < clean; ++i) iteration(0);
    EXPECT_EQ(scaler.get_scale(), clean ? 32768 : 16384);
    EXPECT_EQ(scheduled, clean);
  }
}

TEST(GradScaler, AMP_03_unscale_comes_before_clipping) {
  for (const bool right : {true, false}) {
    Training s;
    optim::SGD sgd({s.p}, {.lr = 1});
    GradScaler scaler({.init_scale = 1024});
    Tensor g = zeros({2});
    g.select(0, 0).fill_(3), g.select(0, 1).fill_(4);
    scaler.scale((s.p * g).sum()).backward();
    if (right) scaler.unscale_(sgd);
    const double norm = nn::utils::clip_grad_norm_({s.p}, 1).item<double>();
    EXPECT_TRUE(scaler.step(sgd));
    const double expected = right ? 5 : 5120, length = right ? 1 : 1.0 / 1024;
    EXPECT_NEAR(norm, expected, 1e-3);
    EXPECT_NEAR(s.p.to_vector<double>()[0], -0.6 * length, 1e-6);
    EXPECT_NEAR(s.p.to_vector<double>()[1], -0.8 * length, 1e-6);
  }
}

TEST(GradScaler, AMP_05_half_gradients_are_refused_and_autocasts_are_float32) {
  for (const bool autocast : {false, true}) {
    nn::Linear model(2, 2);
    if (!autocast) model->to(kFloat16);
    optim::SGD sgd(model->parameters(), {.lr = 0.1});
    GradScaler scaler({.init_scale = 1024});  // the default is itself above float16's largest number
    const Tensor x = ones({1, 2}, autocast ? kFloat32 : kFloat16);
    Tensor loss;
    {
      amp::autocast scope(DeviceType::cpu, {.dtype = kFloat16, .enabled = autocast});
      loss = model(x).sum();
    }
    scaler.scale(loss).backward();
    if (autocast) {
      EXPECT_TRUE(scaler.step(sgd));
      for (const Tensor& p : model->parameters()) EXPECT_EQ(p.grad().dtype(), kFloat32);
    } else {
      EXPECT_GRADUS_ERROR(scaler.step(sgd), "E-DTYPE",
                          "GradScaler: Attempting to unscale FP16 gradients; one has shape [2, 2]");
    }
  }
}

TEST(GradScaler, AMP_09_float16_flushes_what_bfloat16_keeps) {
  const auto as = [](double value, DType dtype) { return full({}, value).to(dtype).item<double>(); };
  EXPECT_EQ(as(1e-8, kFloat16), 0);
  EXPECT_NEAR(as(1e-8, kBFloat16), 1.0012e-8, 1e-12);
  EXPECT_NEAR(as(1e-8 * 65536, kFloat16), 6.5517e-4, 1e-8);
  EXPECT_EQ(as(70000, kFloat16), kInf);
  EXPECT_EQ(as(70000, kBFloat16), 70144);
}

TEST(GradScaler, calls_out_of_order_say_what_is_wrong) {
  Training s;
  optim::SGD sgd({s.p}, {.lr = 1});
  GradScaler scaler;
  EXPECT_GRADUS_ERROR(scaler.step(sgd), "E-SCALER", "Attempted step but nothing was scaled yet");
  EXPECT_GRADUS_ERROR(scaler.unscale_(sgd), "E-SCALER", "Attempted unscale_ but nothing was scaled yet");
  EXPECT_GRADUS_ERROR(scaler.update(), "E-SCALER", "Attempted update but nothing was scaled yet");
  scaler.scale(ones({}));
  EXPECT_GRADUS_ERROR(scaler.step(sgd), "E-SCALER", "No inf checks were recorded for this optimizer");
  EXPECT_GRADUS_ERROR(GradScaler().update(), "E-SCALER", "Attempted update");
  scaler.update(128.0);
  EXPECT_GRADUS_ERROR(scaler.update(), "E-SCALER", "No inf checks were recorded prior to update.");
  s.backward(scaler, 1);
  scaler.unscale_(sgd);
  EXPECT_GRADUS_ERROR(scaler.unscale_(sgd), "E-SCALER", "unscale_() has already been called");
  scaler.step(sgd);
  EXPECT_GRADUS_ERROR(scaler.unscale_(sgd), "E-SCALER", "unscale_() is being called after step()");
  EXPECT_GRADUS_ERROR(scaler.step(sgd), "E-SCALER", "step() has already been called");
  scaler.update();
  EXPECT_EQ(s.p.to_vector<float>(), (std::vector<float>{-1, -1}));
}

TEST(GradScaler, an_infinity_of_one_optimizer_skips_its_step_and_lowers_the_scale_of_all) {
  Training a, b;
  optim::SGD first({a.p}, {.lr = 1}), second({b.p}, {.lr = 1});
  GradScaler scaler({.init_scale = 8});
  a.backward(scaler, kInf);
  b.backward(scaler, 1);
  EXPECT_FALSE(scaler.step(first));
  EXPECT_TRUE(scaler.step(second));
  scaler.update();
  EXPECT_EQ(scaler.get_scale(), 4);
  EXPECT_EQ(a.p.to_vector<float>(), (std::vector<float>{0, 0}));
  EXPECT_EQ(b.p.to_vector<float>(), (std::vector<float>{-1, -1}));
}

TEST(GradScaler, disabled_does_nothing_but_step) {
  Training s;
  optim::SGD sgd({s.p}, {.lr = 1});
  GradScaler scaler({.enabled = false});
  s.backward(scaler, 2);
  EXPECT_TRUE(scaler.step(sgd));
  scaler.update();
  EXPECT_EQ(s.p.to_vector<float>(), (std::vector<float>{-2, -2}));
  EXPECT_EQ(scaler.get_scale(), 1);
  EXPECT_TRUE(scaler.state_dict().empty());
}

TEST(GradScaler, its_state_goes_on_where_it_was) {
  Training s;
  optim::SGD sgd({s.p}, {.lr = 1});
  GradScaler scaler({.init_scale = 8, .growth_interval = 3}), other;
  for (int i = 0; i < 2; ++i) s.backward(scaler, 1), scaler.step(sgd), scaler.update();
  other.load_state_dict(scaler.state_dict());
  for (GradScaler* each : {&scaler, &other}) {
    EXPECT_EQ(each->get_growth_tracker(), 2);
    s.backward(*each, 1), each->step(sgd), each->update();
    EXPECT_EQ(each->get_scale(), 16);
    EXPECT_EQ(each->get_growth_tracker(), 0);
  }
  EXPECT_GRADUS_ERROR(other.load_state_dict({}), "E-STATE-DICT", "The source state dict is empty");
  EXPECT_GRADUS_ERROR(other.load_state_dict({{"scale", ones({})}}), "E-STATE-DICT", "growth_factor");
  EXPECT_EQ(other.get_scale(), 16);
}

TEST(GradScaler, only_step_waits_for_the_device) {
  Training s{Device("sim")};
  optim::SGD sgd({s.p}, {.lr = 1});
  GradScaler scaler;
  const auto waits = [](const auto& f) {
    const int64_t before = stats().synchronizations;
    f();
    return stats().synchronizations - before;
  };
  s.backward(scaler, 1);
  EXPECT_EQ(waits([&] { s.backward(scaler, 1); }), 0);
  EXPECT_EQ(waits([&] { scaler.unscale_(sgd); }), 0);
  EXPECT_EQ(waits([&] { scaler.step(sgd); }), 1);
  EXPECT_EQ(waits([&] { scaler.update(); }), 0);
}

TEST(GradScaler, refuses_factors_on_the_wrong_side_of_one) {
  EXPECT_GRADUS_ERROR(GradScaler({.growth_factor = 1}), "E-ARG", "The growth factor must be > 1.0, got 1");
  EXPECT_GRADUS_ERROR(GradScaler({.backoff_factor = 1}), "E-ARG", "The backoff factor must be < 1.0");
}

}  // namespace
}  // namespace gradus
