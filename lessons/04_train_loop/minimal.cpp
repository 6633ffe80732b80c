// Lesson 04, the smallest loop: 16 numbers in, one out, mean squared error, Adam; and what .item() costs.
//
// Run: build/release/lessons/04_train_loop_minimal
#include <gradus/gradus.h>

#include <cstdio>

#include "../common/app.h"
#include "../common/models.h"

using namespace gradus;

// [snippet minimal]
void minimal_loop(Device device) {
  lesson::section(1, "The minimal loop");
  nn::Sequential model = lesson::small_net();
  model->to(device);
  optim::Adam optimizer(model->parameters(), {.lr = 1e-3});
  nn::MSELoss loss_fn;
  const Tensor x = randn({128, 16}), y = randn({128, 1});
  DataLoader loader(TensorDataset(x, y), {.batch_size = 32, .shuffle = true});
  for (int epoch = 0; epoch < 3; ++epoch) {
    Tensor loss;
    for (auto& [batch_x, batch_y] : loader) {
      const Tensor pred = model(batch_x.to(device));
      loss = loss_fn(pred, batch_y.to(device));
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
    }
    std::printf("epoch %d, loss: %.4f\n", epoch, loss.item<double>());
  }
}
// [/snippet]

// [snippet item]
// Reading a number from the device makes the host wait for it. The seeds read two a batch; summing on the
// device, one an epoch is enough.
void count_item(Device device) {
  lesson::section(2, ".item() twice a batch, and once an epoch");
  nn::Sequential model = lesson::small_net();
  model->to(device);
  const Tensor x = randn({320, 16}).to(device), y = randn({320, 1}).to(device);
  auto epoch = [&](bool item_each_batch) {
    NoGradGuard no_grad;
    const Stats before = stats();
    double loss_sum = 0, mean_sum = 0;
    Tensor on_device = zeros({}, {.device = device});
    for (int64_t i = 0; i < 10; ++i) {
      const Tensor pred = model(x.narrow(0, 32 * i, 32)), loss = mse_loss(pred, y.narrow(0, 32 * i, 32));
      if (item_each_batch) {
        loss_sum += loss.item<double>();
        mean_sum += pred.mean().item<double>();
      } else {
        on_device.add_(loss);
      }
    }
    if (!item_each_batch) loss_sum = on_device.item<double>();
    std::printf("%-18s loss %.5f, host waits: %ld\n",
                item_each_batch ? "twice a batch:" : "once an epoch:", loss_sum / 10,
                (stats() - before).synchronizations);
  };
  epoch(true);
  epoch(false);
}
// [/snippet]

int main(int argc, char** argv) {
  lesson::Flags flags;
  return lesson::run(argc, argv, "Lesson 04: the smallest loop", flags, [&] {
    const Device device = select_device(flags.device);
    minimal_loop(device);
    count_item(device);
  });
}
