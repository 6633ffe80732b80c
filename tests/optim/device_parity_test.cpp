// Row 4.7: the same seed gives the same numbers on every device, to the last bit, whatever the streams.
#include <gradus/gradus.h>
#include <gtest/gtest.h>

#include "support/tensors.h"

namespace gradus::optim {
namespace {

using gradus::testing::bytes_of;

// Convolution, batch norm, pooling and dropout: what sums, what draws, and what keeps state.
nn::Sequential make_net() {
  return nn::Sequential(nn::Conv2d(1, 8, 3, {.padding = 1}), nn::BatchNorm2d(8), nn::ReLU(), nn::MaxPool2d(2),
                        nn::Flatten(), nn::Linear(8 * 7 * 7, 32), nn::GELU(), nn::Dropout(0.5),
                        nn::Linear(32, 10));
}

// Parameters, buffers and losses after a few steps, as bytes.
std::string trained_on(Device device) {
  manual_seed(7);
  nn::Sequential net = make_net();
  net->to(device);
  AdamW adam(net->parameters(), {.lr = 1e-2});
  std::string bytes;
  for (int step = 0; step < 4; ++step) {
    const Tensor x = randn({32, 1, 14, 14}, {.device = device}).to(MemoryFormat::channels_last);
    const Tensor y = randint(10, {32}, {.device = device});
    adam.zero_grad();
    const Tensor loss = cross_entropy(net(x), y);
    loss.backward();
    adam.step();
    bytes += bytes_of(loss.detach().cpu());
  }
  for (const auto& [name, tensor] : net->state_dict()) bytes += bytes_of(tensor.detach().cpu());
  return bytes;
}

struct EveryDevice : ::testing::TestWithParam<Device> {};

TEST_P(EveryDevice, gives_the_cpus_numbers_bit_for_bit) {
  EXPECT_TRUE(trained_on(GetParam()) == trained_on(Device()));
}

TEST_P(EveryDevice, gives_the_same_numbers_on_a_stream_of_its_own_and_with_tasks_delayed) {
  const sim::OptionsGuard late([](auto& o) { o.jitter_us = 50; });
  const StreamGuard side(Stream::create(GetParam()));
  EXPECT_TRUE(trained_on(GetParam()) == trained_on(Device()));
}

INSTANTIATE_TEST_SUITE_P(Sim, EveryDevice, ::testing::Values(Device("sim:0"), Device("sim:1")),
                         [](const auto& info) { return "sim" + std::to_string(info.param.index()); });

}  // namespace
}  // namespace gradus::optim
