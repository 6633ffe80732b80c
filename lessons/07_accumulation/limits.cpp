// Lesson 07, the limits: BatchNorm, mixed precision, and memory.
//
// Run: build/release/lessons/07_accumulation_limits
#include <fmt/format.h>
#include <gradus/gradus.h>

#include <cstdio>

#include "../common/app.h"
#include "accumulate.h"

// [snippet exceptions]
void exceptions(Device device) {
  lesson::section(1, "BatchNorm, and mixed precision");
  const Task task(device);
  nn::Sequential normal(nn::Linear(16, 32), nn::BatchNorm1d(32), nn::ReLU(), nn::Linear(32, 1));
  normal->to(device);
  const Tensor big = accumulated(*normal.ptr(), task, 1, 1);
  const double batch_norm = difference(accumulated(*normal.ptr(), task, 8, 8), big);
  fmt::print("with BatchNorm the gradients differ by {:.2f}: it sees 8 rows, not 64\n", batch_norm);
  lesson::result("C31_difference", batch_norm);

  // One scope or several, the scale of one group is one; unscale once, after the last backward().
  nn::Sequential model = lesson::small_net();
  model->to(device);
  optim::SGD optimizer(model->parameters(), {.lr = 0.01});
  const Tensor exact = accumulated(*model.ptr(), task, 1, 1);
  model->zero_grad();
  amp::GradScaler scaler({.init_scale = 1024});
  for (int64_t k = 0; k < 8; ++k) {
    Tensor loss;
    {
      amp::autocast scope(device.type(), {.dtype = kBFloat16});
      loss = mse_loss(model(task.x.narrow(0, 8 * k, 8)), task.y.narrow(0, 8 * k, 8));
    }
    scaler.scale(loss / 8).backward();
  }
  scaler.unscale_(optimizer);
  fmt::print("in bfloat16, scaled and unscaled once, they differ by {:.4f}\n",
             difference(all_gradients(*model.ptr()), exact));
  scaler.step(optimizer);
  scaler.update();
}
// [/snippet exceptions]

// [snippet memory]
void memory(Device device) {
  lesson::section(2, "Memory: what the micro-batch needs");
  nn::Sequential model(nn::Linear(256, 1024), nn::ReLU(), nn::Linear(1024, 1024), nn::ReLU(),
                       nn::Linear(1024, 1));
  model->to(device);
  const Tensor x = randn({2048, 256}).to(device), y = randn({2048, 1}).to(device);
  for (const int64_t steps : {1, 2, 4, 8}) {
    model->zero_grad();
    synchronize(device);
    reset_peak_memory_stats(device);
    for (int64_t k = 0; k < steps; ++k) {
      const int64_t size = 2048 / steps;
      (mse_loss(model(x.narrow(0, k * size, size)), y.narrow(0, k * size, size)) / static_cast<double>(steps))
          .backward();
    }
    synchronize(device);
    const double peak = static_cast<double>(max_memory_allocated(device)) / (1 << 20);
    fmt::print("{} x {:<4} rows: peak {:.1f} MiB\n", steps, 2048 / steps, peak);
    lesson::result("C32_peak_mib", peak);
  }
}
// [/snippet memory]

int main(int argc, char** argv) {
  lesson::Flags flags{.unused = "--epochs, --batch-size, --data and --quick"};
  return lesson::run(argc, argv, "Lesson 07: the limits of accumulation", flags, [&] {
    const Device device = select_device(flags.device);
    std::printf("device: %s\n", to_string(device).c_str());
    exceptions(device);
    memory(device);
  });
}
