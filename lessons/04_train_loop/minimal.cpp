// Lesson 04, the smallest loop: 16 numbers in, one out, mean squared error, Adam; what .item() costs;
// and what no_grad saves.
//
// Run: build/release/lessons/04_train_loop_minimal
#include <gradus/gradus.h>

#include <cstdio>

#include "../common/app.h"
#include "../common/models.h"

using namespace gradus;

// [snippet minimal]
void minimal_loop(const lesson::Flags& flags, Device device) {
  lesson::section(1, "The minimal loop");
  nn::Sequential model = lesson::small_net();
  model->to(device);
  optim::Adam optimizer(model->parameters(), {.lr = 1e-3});
  nn::MSELoss loss_fn;
  const Tensor x = randn({128, 16}), y = randn({128, 1});
  DataLoader loader(TensorDataset(x, y), {.batch_size = flags.batch_size, .shuffle = true});
  for (int epoch = 0; epoch < flags.epochs; ++epoch) {
    Tensor loss;
    for (auto& [batch_x, batch_y] : loader) {
      const Tensor pred = model(batch_x.to(device));
      loss = loss_fn(pred, batch_y.to(device));
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
    }
    std::printf("epoch %d, loss: %.4f\n", epoch, loss.item<double>());
    lesson::result("loss", loss.item<double>());
  }
}
// [/snippet minimal]

// [snippet item]
// Reading a number from the device makes the host wait for it. Tutorials read two in each batch; with the
// sums on the device, two an epoch are enough.
void count_item(bool each_batch, Device device) {
  manual_seed(0);
  nn::Sequential model = lesson::small_net();
  model->to(device);
  const Tensor x = randn({320, 16}).to(device), y = randn({320, 1}).to(device);
  double loss_sum = 0, mean_sum = 0;
  Tensor losses = zeros({}, {.device = device}), means = zeros({}, {.device = device});
  NoGradGuard no_grad;
  const Stats before = stats();
  for (int64_t i = 0; i < 10; ++i) {
    const Tensor pred = model(x.narrow(0, 32 * i, 32)), loss = mse_loss(pred, y.narrow(0, 32 * i, 32));
    if (each_batch) {
      loss_sum += loss.item<double>();
      mean_sum += pred.mean().item<double>();
    } else {
      losses.add_(loss);
      means.add_(pred.mean());
    }
  }
  if (!each_batch) loss_sum = losses.item<double>(), mean_sum = means.item<double>();
  const int64_t waits = (stats() - before).synchronizations;
  std::printf("%-15s loss %.5f, mean prediction %.5f, host waits: %ld\n",
              each_batch ? "twice a batch:" : "twice an epoch:", loss_sum / 10, mean_sum / 10, waits);
  lesson::result("host_waits", static_cast<double>(waits));
}
// [/snippet item]

// [snippet no_grad]
// What one batch of 256 costs the CNN in validation, beyond the model and the images.
void validation_memory(bool record, Device device) {
  lesson::CNN model;
  model.to(device);
  model.eval();
  const Tensor images = randn({256, 1, 28, 28}).to(device).to(MemoryFormat::channels_last);
  AutoGradMode grad_mode(record);
  const int64_t before = memory_allocated(device);
  reset_peak_memory_stats(device);
  const Tensor output = model(images);
  const double peak = static_cast<double>(max_memory_allocated(device) - before) / (1 << 20);
  const double held = static_cast<double>(memory_allocated(device) - before) / (1 << 20);
  std::printf("%-12s peak %.2f MB, held as long as the output lives %.2f MB\n",
              record ? "eval():" : "and no_grad:", peak, held);
  lesson::result(record ? "C12_peak_megabytes_recorded" : "C12_peak_megabytes_no_grad", peak);
  lesson::result(record ? "C12_held_megabytes_recorded" : "C12_held_megabytes_no_grad", held);
}
// [/snippet no_grad]

int main(int argc, char** argv) {
  lesson::Flags flags{.epochs = 3, .batch_size = 32, .unused = "--data and --quick"};
  return lesson::run(argc, argv, "Lesson 04: the smallest loop", flags, [&] {
    const Device device = select_device(flags.device);
    std::printf("device: %s\n", to_string(device).c_str());
    minimal_loop(flags, device);
    lesson::section(2, ".item() twice a batch, and twice an epoch");
    count_item(true, device);
    count_item(false, device);
    lesson::section(3, "Validation: eval() alone, and with no_grad");
    validation_memory(true, device);
    validation_memory(false, device);
  });
}
