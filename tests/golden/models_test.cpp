// Whole networks over 5 training steps against PyTorch: losses, gradients, weights, buffers, and the output
// in eval mode. Float64 says that each step is the same computation; float32, that it is so in the kernels
// used.
#include <gradus/nn/activation.h>
#include <gradus/nn/containers.h>
#include <gradus/nn/layers.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/loss.h>
#include <gradus/optim/optimizer.h>
#include <gradus/tensor/grad_mode.h>

#include <cmath>
#include <functional>
#include <memory>

#include "golden.h"
#include "model_vectors.h"

namespace gradus::golden {
namespace {

using optim::Optimizer;

// One model of vectors/models.py.
struct Model {
  std::string name;
  nn::Sequential net;
  Tensor x, target;
  Tensor (*loss)(const Tensor& output, const Tensor& target);
  std::function<std::unique_ptr<Optimizer>(const std::vector<Tensor>&)> optimizer;
};

Tensor classify(const Tensor& output, const Tensor& target) { return cross_entropy(output, target); }
Tensor fit(const Tensor& output, const Tensor& target) { return mse_loss(output, target); }

auto adam(double lr) {
  return [lr](const std::vector<Tensor>& p) {
    return std::make_unique<optim::Adam>(p, optim::AdamOptions{.lr = lr});
  };
}

Model cnn() {
  return {"cnn",
          nn::Sequential(nn::Conv2d(1, 32, 3, {.padding = 1}), nn::ReLU(), nn::MaxPool2d(2),
                         nn::Conv2d(32, 64, 3, {.padding = 1}), nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(),
                         nn::Linear(3136, 256), nn::ReLU(), nn::Dropout(0.0), nn::Linear(256, 10)),
          images(4, 28),
          hashed_ints({4}, 1001, 10),
          classify,
          adam(1e-3)};
}

Model simple_net() {
  return {
      "simple_net",
      nn::Sequential(nn::Linear(784, 256), nn::ReLU(), nn::Linear(256, 128), nn::ReLU(), nn::Linear(128, 10)),
      images(16, 28).flatten(1),
      hashed_ints({16}, 1001, 10),
      classify,
      adam(1e-3)};
}

Model tiny() {
  return {"tiny",
          nn::Sequential(nn::Linear(16, 32), nn::ReLU(), nn::Linear(32, 1)),
          signed_unit({32, 16}, 1000),
          signed_unit({32, 1}, 1001),
          fit,
          adam(1e-2)};
}

Model normed() {
  return {"normed",
          nn::Sequential(nn::Conv2d(1, 4, 3, {.padding = 1, .bias = false}), nn::BatchNorm2d(4), nn::ReLU(),
                         nn::AvgPool2d(2), nn::Flatten(), nn::Linear(64, 3)),
          images(6, 8),
          hashed_ints({6}, 1001, 3),
          classify,
          [](const std::vector<Tensor>& p) {
            return std::make_unique<optim::SGD>(p, optim::SGDOptions{.lr = 0.1, .momentum = 0.9});
          }};
}

Model layer_normed() {
  return {"layer_normed",
          nn::Sequential(nn::Embedding(11, 8), nn::LayerNorm(Shape{8}), nn::GELU(), nn::Flatten(),
                         nn::Linear(40, 4)),
          hashed_ints({7, 5}, 1000, 11),
          hashed_ints({7}, 1001, 4),
          classify,
          [](const std::vector<Tensor>& p) {
            return std::make_unique<optim::AdamW>(p, optim::AdamWOptions{.lr = 1e-2, .weight_decay = 0.1});
          }};
}

// Fills all parameters by the formula; a bias takes the fan_in of the weight before it. A one-dimensional
// weight is that of a norm layer.
void set_weights(nn::Module& net) {
  const NoGradGuard no_grad;
  uint32_t stream = 0;
  int64_t fan_in = 1;
  bool norm = false;
  for (auto& [name, param] : net.named_parameters()) {
    const bool weight = name.ends_with("weight");
    if (weight) norm = param.dim() == 1;
    if (weight && !norm) fan_in = param.numel() / param.size(0);
    Tensor values = signed_unit(param.sizes(), stream++, norm ? 0.25 : power_of_two_scale(fan_in));
    if (weight && norm) values = values + 1.0;
    Tensor(param).copy_(values);
  }
}

struct Sums {
  double sum = 0, absolute = 0;
};
Sums sums(const Tensor& tensor) {
  Sums s;
  for (const double value : tensor.detach().to_vector<double>()) {
    s.sum += value;
    s.absolute += std::abs(value);
  }
  return s;
}

// At most 16 elements, every stride-th.
Tensor sample(const Tensor& tensor) {
  const Tensor flat = tensor.detach().flatten();
  return flat.slice(0, 0, flat.numel(), (flat.numel() + 15) / 16);
}

class Training {
 public:
  Training(Model model, DType dtype, double tolerance)
      : model_(std::move(model)), prefix_(model_.name + "/" + to_string(dtype) + "/"), tolerance_(tolerance) {
    model_.net->to(dtype);
    set_weights(*model_.net);
    for (Tensor* data : {&model_.x, &model_.target})
      if (data->is_floating_point()) *data = data->to(dtype);
    optimizer_ = model_.optimizer(model_.net->parameters());
  }

  void check() {
    constexpr int kSteps = 5;
    for (int step = 0; step < kSteps && !::testing::Test::HasFailure(); ++step) {
      SCOPED_TRACE(prefix_ + " step " + std::to_string(step + 1));
      check_step(step);
    }
    for (const auto& [name, buffer] : model_.net->named_buffers()) expect_close("buffer/" + name, buffer);
    model_.net->eval();
    expect_close("output", model_.net(model_.x).detach());
  }

 private:
  const Tensor& wanted(const std::string& name) const { return file("models").at(prefix_ + name); }
  void expect_close(const std::string& name, const Tensor& got) const {
    EXPECT_TRUE(close(got, wanted(name), tolerance_)) << name;
  }

  void check_step(int step) {
    optimizer_->zero_grad();
    const Tensor loss = model_.loss(model_.net(model_.x), model_.target);
    loss.backward();
    EXPECT_TRUE(close(loss.detach(), wanted("losses")[step], tolerance_));
    if (step == 0) check_sums(wanted("grads"), [](const Tensor& p) { return p.grad(); });
    optimizer_->step();
    check_sums(wanted("after")[step], [](const Tensor& p) { return p; });
    for (const auto& [name, param] : model_.net->named_parameters())
      EXPECT_TRUE(close(sample(param), wanted("sample/" + name)[step], tolerance_ / 4)) << name;
  }

  // Sum and absolute sum of every parameter; a sum may cancel, so the absolute one is the measure for both.
  void check_sums(const Tensor& table, Tensor (*of)(const Tensor&)) const {
    const std::vector<double> rows = table.to_vector<double>();
    size_t row = 0;
    for (const auto& [name, param] : model_.net->named_parameters()) {
      const Sums got = sums(of(param));
      const double allowed = tolerance_ * std::max(1.0, rows[row + 1]);
      EXPECT_TRUE(std::abs(got.sum - rows[row]) <= allowed)
          << name << ": sum " << got.sum << ", not " << rows[row];
      EXPECT_TRUE(std::abs(got.absolute - rows[row + 1]) <= allowed)
          << name << ": absolute sum " << got.absolute << ", not " << rows[row + 1];
      row += 2;
    }
    EXPECT_EQ(row, rows.size());
  }

  Model model_;
  std::string prefix_;
  double tolerance_;
  std::unique_ptr<Optimizer> optimizer_;
};

// PyTorch's own float32 and float64 runs differ by up to 7e-7 in what is compared here (single weights by
// 2.5e-7); Adam divides by the root of tiny squares, so another order of summation may show somewhat more.
// The float64 runs differ by the order of sums of up to 3136 terms only. Adam with its betas rounded to
// float32 was off by 1e-5 in the output.
constexpr double kFloat64Tolerance = 1e-13, kFloat32Tolerance = 2e-6;

void check(Model (*make)()) {
  Training(make(), kFloat64, kFloat64Tolerance).check();
  Training(make(), kFloat32, kFloat32Tolerance).check();
}

TEST(GoldenModels, cnn_of_lesson_04) { check(cnn); }
TEST(GoldenModels, simple_net_of_lesson_03) { check(simple_net); }
TEST(GoldenModels, tiny_net_of_the_minimal_loop) { check(tiny); }
TEST(GoldenModels, batch_norm_net) { check(normed); }
TEST(GoldenModels, layer_norm_net) { check(layer_normed); }

TEST(GoldenModels, cnn_in_channels_last) {
  Model model = cnn();
  model.x = model.x.contiguous(MemoryFormat::channels_last);
  Training(std::move(model), kFloat32, kFloat32Tolerance).check();
}

}  // namespace
}  // namespace gradus::golden
