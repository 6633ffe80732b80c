// Whole training steps: what they cost in launches and allocations, and that a resumed run is the same run.
#include <gradus/gradus.h>
#include <gradus/runtime/observer.h>

#include <cmath>

#include "support/devices.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

namespace gradus::optim {
namespace {

// Lesson 04's network (mission: conv-relu-pool twice, flatten, linear, dropout, linear).
struct Cnn : nn::Module {
  nn::Sequential net = register_module(
      "net",
      nn::Sequential(nn::Conv2d(1, 32, 3, {.padding = 1}), nn::ReLU(), nn::MaxPool2d(2),
                     nn::Conv2d(32, 64, 3, {.padding = 1}), nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(),
                     nn::Linear(64 * 7 * 7, 256), nn::ReLU(), nn::Dropout(0.5), nn::Linear(256, 10)));
  Tensor forward(const Tensor& x) override { return net(x); }
};

struct LaunchNames : runtime::LaunchObserver {
  LaunchNames() { runtime::add_observer(this); }
  ~LaunchNames() override { runtime::remove_observer(this); }
  void begin(const runtime::LaunchRecord& record) override { names.emplace_back(record.name); }
  void end(const runtime::LaunchRecord&) override {}
  std::vector<std::string> names;
};

// Every kernel of one step, in order. A change here is a change of what a step costs.
// clang-format off
const std::vector<std::string> kLaunches = {
    "conv2d", "relu", "max_pool2d", "conv2d", "relu", "max_pool2d", "copy",  // flatten wants (N, C, H, W) order
    "matmul", "relu", "dropout", "matmul", "cross_entropy",
    "fill", "cross_entropy_backward",  // the 1 that backward() starts from
    "matmul", "matmul", "sum", "dropout", "relu_backward", "matmul", "matmul", "sum",
    "copy", "max_pool2d_backward", "relu_backward", "conv2d_input", "conv2d_weight",
    "max_pool2d_backward", "relu_backward", "conv2d_weight", "fused_adam_"};
// clang-format on

TEST(TrainStep, a_warm_step_of_the_cnn_allocates_nothing_and_launches_few_kernels) {
  manual_seed(0);
  Cnn model;
  Adam adam(model.parameters());
  const nn::CrossEntropyLoss criterion;
  const Tensor x = rand({16, 1, 28, 28}).contiguous(MemoryFormat::channels_last);
  const Tensor y = randint(10, {16});
  auto step = [&] {
    adam.zero_grad();
    criterion(model(x), y).backward();
    adam.step();
  };
  for (int i = 0; i < 2; ++i) step();
  const Stats before = stats();
  LaunchNames launched;
  step();
  const Stats used = stats() - before;
  EXPECT_EQ(used.driver_allocations, 0);
  EXPECT_EQ(used.driver_frees, 0);
  EXPECT_EQ(used.synchronizations, 0);
  EXPECT_EQ(launched.names, kLaunches);
  EXPECT_EQ(used.launches, static_cast<int64_t>(kLaunches.size()));
}

// On devices that queue work the host must not wait for it: the step is then as fast as its kernels.
// (.item(), which a program calls to print a loss, does wait.)
struct EveryQueue : ::testing::TestWithParam<Device> {};

TEST_P(EveryQueue, a_warm_step_of_the_cnn_never_waits_and_copies_nothing_to_or_from_the_host) {
  const Device device = GetParam();
  manual_seed(0);
  Cnn model;
  model.to(device);
  Adam adam(model.parameters());
  const nn::CrossEntropyLoss criterion;
  const Tensor x = rand({4, 1, 28, 28}).contiguous(MemoryFormat::channels_last).to(device);
  const Tensor y = randint(10, {4}).to(device);
  Tensor loss;
  const auto step = [&] {
    adam.zero_grad();
    loss = criterion(model(x), y);
    loss.backward();
    adam.step();
  };
  for (int i = 0; i < 2; ++i) step();
  synchronize(device);
  const Stats before = stats(device);
  LaunchNames launched;
  step();
  const Stats used = stats(device) - before;
  EXPECT_EQ(used.synchronizations, 0);
  EXPECT_EQ(used.copies_h2d, 0);
  EXPECT_EQ(used.copies_d2h, 0);
  EXPECT_EQ(used.driver_allocations, 0);
  EXPECT_EQ(used.driver_frees, 0);
  EXPECT_EQ(launched.names, kLaunches);
  EXPECT_EQ(used.launches, static_cast<int64_t>(kLaunches.size()));
  EXPECT_TRUE(std::isfinite(loss.item<float>()));
  EXPECT_EQ((stats(device) - before).synchronizations, 1) << "item() waits, and that is counted";
}
INSTANTIATE_TEST_SUITE_P(TrainStep, EveryQueue, ::testing::ValuesIn(testing::devices_with_queues()),
                         [](const auto& info) { return std::string(to_string(info.param.type())); });

TEST(TrainStep, the_loss_of_a_small_network_goes_down) {
  manual_seed(0);
  nn::Sequential net(nn::Linear(16, 32), nn::ReLU(), nn::Linear(32, 1));
  Adam adam(net->parameters(), {.lr = 0.01});
  const Tensor x = randn({64, 16}), y = x.narrow(1, 0, 1) * 2.0 + 1.0;
  double first = 0, last = 0;
  for (int i = 0; i < 200; ++i) {
    adam.zero_grad();
    const Tensor loss = mse_loss(net(x), y);
    loss.backward();
    adam.step();
    (i == 0 ? first : last) = loss.item<double>();
  }
  EXPECT_TRUE(last < 0.02 * first) << first << " to " << last;
}

// What MOD-05 trains: a layer, Adam and a schedule.
struct Training {
  nn::Linear model{2, 1};
  Adam adam{model->parameters(), {.lr = 0.1}};
  StepLR schedule{adam, 3, 0.5};
  Tensor x = tensor<float>({1, 2, -1, 0.5, 0, 3, 2, -2, 1, 1, -3, 1, 0.5, 0.25, 4, -1}, {8, 2});
  Tensor y = tensor<float>({1, -1, 2, 0, 3, 1, -2, 0.5}, {8, 1});

  void train(int steps) {
    for (int i = 0; i < steps; ++i) {
      adam.zero_grad();
      mse_loss(model(x), y).backward();
      adam.step();
      schedule.step();
    }
  }
  Checkpoint save() const {
    Checkpoint c;
    c["model"].tensors = model->state_dict();
    c["optimizer"].tensors = adam.state_dict();
    c["scheduler"].tensors = schedule.state_dict();
    return c;
  }
  std::vector<float> weights() const {
    std::vector<float> values = model->weight.to_vector<float>();
    values.push_back(model->bias.item<float>());
    return values;
  }
};

TEST(Resume, MOD_05_restores_optimizer_and_scheduler_bit_for_bit) {
  const ::gradus::testing::TempDir dir;
  manual_seed(0);
  Training first;
  Training straight;
  straight.model->load_state_dict(first.model->state_dict());
  straight.train(8);
  EXPECT_EQ(straight.adam.lr(), 0.025);

  first.train(4);
  save_checkpoint(dir.path("run.ckpt"), first.save());
  const Checkpoint saved = load_checkpoint(dir.path("run.ckpt"));
  Training resumed;
  resumed.model->load_state_dict(saved.at("model").tensors);
  resumed.adam.load_state_dict(saved.at("optimizer").tensors);
  resumed.schedule.load_state_dict(saved.at("scheduler").tensors);
  resumed.train(4);
  EXPECT_EQ(resumed.weights(), straight.weights());
  EXPECT_EQ(resumed.adam.lr(), 0.025);

  Training forgetful;  // all but the optimizer: the rate is right, the weights are not
  forgetful.model->load_state_dict(saved.at("model").tensors);
  forgetful.schedule.load_state_dict(saved.at("scheduler").tensors);
  forgetful.train(4);
  EXPECT_EQ(forgetful.adam.lr(), 0.025);
  EXPECT_NE(forgetful.weights(), straight.weights());
}

TEST(Resume, MOD_05_a_missing_part_is_named) {
  const ::gradus::testing::TempDir dir;
  Training run;
  Checkpoint c;
  c["model"].tensors = run.model->state_dict();
  save_checkpoint(dir.path("run.ckpt"), c);
  EXPECT_GRADUS_ERROR(load_checkpoint(dir.path("run.ckpt")).at("optimizer"), "E-CHECKPOINT", "optimizer");
}

}  // namespace
}  // namespace gradus::optim
