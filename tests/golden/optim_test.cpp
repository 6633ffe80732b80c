// Optimizers over 20 steps with given gradients, learning-rate schedules and gradient clipping against
// PyTorch.
#include <gradus/nn/clip_grad.h>
#include <gradus/ops/factories.h>
#include <gradus/optim/lr_scheduler.h>
#include <gradus/optim/optimizer.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>

#include "golden.h"

namespace gradus::golden {
namespace {

using Params = std::vector<Tensor>;
using MakeOptimizer = std::function<std::unique_ptr<optim::Optimizer>(const Params&)>;

MakeOptimizer sgd(const optim::SGDOptions& options) {
  return [options](const Params& p) { return std::make_unique<optim::SGD>(p, options); };
}
MakeOptimizer adam(const optim::AdamOptions& options) {
  return [options](const Params& p) { return std::make_unique<optim::Adam>(p, options); };
}
MakeOptimizer adamw(const optim::AdamWOptions& options) {
  return [options](const Params& p) { return std::make_unique<optim::AdamW>(p, options); };
}

// The file's metadata holds PyTorch's form of each call.
const std::map<std::string, MakeOptimizer> kOptimizers = {
    {"sgd.plain", sgd({.lr = 0.1})},
    {"sgd.momentum", sgd({.lr = 0.05, .momentum = 0.9})},
    {"sgd.dampening", sgd({.lr = 0.05, .momentum = 0.9, .dampening = 0.3})},
    {"sgd.nesterov", sgd({.lr = 0.05, .momentum = 0.8, .nesterov = true})},
    {"sgd.weight_decay", sgd({.lr = 0.1, .weight_decay = 0.05})},
    {"sgd.everything", sgd({.lr = 0.02, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true})},
    {"adam.plain", adam({.lr = 0.01})},
    {"adam.betas", adam({.lr = 0.02, .beta1 = 0.5, .beta2 = 0.9, .eps = 1e-3})},
    {"adam.weight_decay", adam({.lr = 0.01, .weight_decay = 0.1})},
    {"adamw.plain", adamw({.lr = 0.01})},
    {"adamw.weight_decay", adamw({.lr = 0.01, .weight_decay = 0.2})},
    {"adamw.betas", adamw({.lr = 0.02, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-4, .weight_decay = 0.05})},
};
constexpr int kSteps = 20;

Params start(DType dtype) {
  Params params;
  for (const char* name : {"start/p0", "start/p1"}) {
    params.push_back(file("optim").at(name).to(dtype).clone());
    params.back().requires_grad_();
  }
  return params;
}

void set_grads(Params& params, int step) {
  for (size_t k = 0; k < params.size(); ++k) {
    const Tensor grads = file("optim").at("grad/p" + std::to_string(k));
    params[k].set_grad(grads.select(0, step).to(params[k].dtype()).clone());
  }
}

void check_steps(const std::string& name, const MakeOptimizer& make, DType dtype, double tolerance) {
  SCOPED_TRACE(file("optim").metadata.at(name) + " in " + to_string(dtype));
  Params params = start(dtype);
  const auto optimizer = make(params);
  for (int step = 0; step < kSteps; ++step) {
    set_grads(params, step);
    optimizer->step();
    for (size_t k = 0; k < params.size(); ++k) {
      const Tensor& history = file("optim").at(name + "/p" + std::to_string(k));
      ASSERT_TRUE(close(params[k].detach(), history.select(0, step), tolerance))
          << "parameter " << k << " after step " << step + 1;
    }
  }
}

// A step is a handful of roundings of values below 1, or below 1000 where the large gradient is; 20 of them
// add up. Adam's denominator is the root of a square: half the relative error of what is under it.
TEST(GoldenOptim, twenty_steps_in_float64) {
  for (const auto& [name, make] : kOptimizers) check_steps(name, make, kFloat64, 5e-15);
}
TEST(GoldenOptim, twenty_steps_in_float32) {
  for (const auto& [name, make] : kOptimizers) check_steps(name, make, kFloat32, 1e-6);
}

using MakeSchedule = std::function<std::unique_ptr<optim::LRScheduler>(optim::Optimizer&)>;

TEST(GoldenOptim, schedules) {
  using optim::CosineAnnealingLR, optim::Optimizer, optim::StepLR;
  const std::map<std::string, MakeSchedule> schedules = {
      {"step_lr", [](Optimizer& o) { return std::make_unique<StepLR>(o, 3, 0.5); }},
      {"step_lr.tenth", [](Optimizer& o) { return std::make_unique<StepLR>(o, 7); }},
      {"cosine", [](Optimizer& o) { return std::make_unique<CosineAnnealingLR>(o, 10); }},
      {"cosine.floor", [](Optimizer& o) { return std::make_unique<CosineAnnealingLR>(o, 7, 0.01); }}};
  for (const auto& [name, make] : schedules) {
    const std::vector<double> wanted = file("optim").at(name + "/lr").to_vector<double>();
    optim::SGD optimizer(start(kFloat32), {.lr = 0.1});
    const auto schedule = make(optimizer);
    for (size_t epoch = 0; epoch < wanted.size(); ++epoch) {
      // PyTorch multiplies from epoch to epoch, Gradus computes each rate anew.
      EXPECT_TRUE(std::abs(optimizer.lr() - wanted[epoch]) <= 1e-15) << name << ", epoch " << epoch;
      optimizer.step();
      schedule->step();
    }
  }
}

void check_clipped(const std::string& name, const std::function<Tensor(const Params&)>& clip) {
  SCOPED_TRACE(file("optim").metadata.at(name));
  Params params = start(kFloat64);
  set_grads(params, 0);
  const Tensor norm = clip(params);  // clip_grad_value_ has none
  if (norm.defined()) {
    EXPECT_TRUE(close(norm, file("optim").at(name + "/norm"), 1e-14));
  }
  for (size_t k = 0; k < params.size(); ++k)
    EXPECT_TRUE(close(params[k].grad(), file("optim").at(name + "/grad" + std::to_string(k)), 1e-14)) << k;
}

TEST(GoldenOptim, clipping) {
  using nn::utils::clip_grad_norm_;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  check_clipped("clip_norm.cut", [](const Params& p) { return clip_grad_norm_(p, 1.5); });
  check_clipped("clip_norm.inside", [](const Params& p) { return clip_grad_norm_(p, 1000); });
  check_clipped("clip_norm.p1", [](const Params& p) { return clip_grad_norm_(p, 2, 1); });
  check_clipped("clip_norm.inf", [](const Params& p) { return clip_grad_norm_(p, 0.5, kInfinity); });
  check_clipped("clip_value", [](const Params& p) {
    nn::utils::clip_grad_value_(p, 0.4);
    return Tensor();
  });
}

}  // namespace
}  // namespace gradus::golden
