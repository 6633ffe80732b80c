// Lesson 07: gradient accumulation.
//
// You will learn to train with a batch that does not fit: several backward passes, one step. What the loss
// must be divided by, what becomes of the last group, and of micro-batches of unequal size.
//
// Run: ./gradus learn 07          or: build/release/lessons/07_accumulation --device cpu
#include <fmt/format.h>
#include <gradus/gradus.h>

#include <cmath>
#include <cstdio>

#include "../common/app.h"
#include "accumulate.h"

// [snippet equal]
void equal_to_the_big_batch(Device device) {
  lesson::section(1, "N micro-batches or one batch");
  const Task task(device);
  nn::Sequential model = lesson::small_net();
  model->to(device);
  const Tensor big = accumulated(*model.ptr(), task, 1, 1);
  for (const int64_t steps : {2, 4, 8, 16}) {
    const double divided =
        difference(accumulated(*model.ptr(), task, steps, static_cast<double>(steps)), big);
    const Tensor undivided = accumulated(*model.ptr(), task, steps, 1);
    const double ratio = (undivided.norm() / big.norm()).item<double>();
    fmt::print("N = {:<2}: loss / N differs by {:.1e}; undivided, the gradient is {:.3f} times as large\n",
               steps, divided, ratio);
    lesson::result("C29_difference", divided);
    lesson::result("C30_ratio", ratio);
  }
}
// [/snippet equal]

// [snippet optimizers]
// What forgetting to divide does to one step: the change of all parameters.
template <class Optimizer, class Options>
double change(const Task& task, double divisor, const Options& options) {
  manual_seed(1);
  nn::Sequential model = lesson::small_net();
  model->to(task.x.device());
  Optimizer optimizer(model->parameters(), options);
  accumulated(*model.ptr(), task, 8, divisor);
  double squares = 0;
  std::vector<Tensor> old;
  for (const Tensor& p : model->parameters()) old.push_back(p.detach().clone());
  optimizer.step();
  for (size_t i = 0; i < old.size(); ++i)
    squares += square(model->parameters()[i].detach() - old[i]).sum().template item<double>();
  return std::sqrt(squares);
}

void forgetting(Device device) {
  lesson::section(2, "Forgetting to divide by 8: how much larger a step is");
  const Task task(device);
  const double sgd = change<optim::SGD>(task, 1, optim::SGDOptions{.lr = 0.01}) /
                     change<optim::SGD>(task, 8, optim::SGDOptions{.lr = 0.01});
  const double adam = change<optim::Adam>(task, 1, optim::AdamOptions{.lr = 0.01}) /
                      change<optim::Adam>(task, 8, optim::AdamOptions{.lr = 0.01});
  fmt::print("SGD: {:.3f} times, Adam: {:.3f} times\n", sgd, adam);
  lesson::result("C58_sgd", sgd);
  lesson::result("C58_adam", adam);
}
// [/snippet optimizers]

// [snippet last_group]
// 7 micro-batches in groups of 4. The loop of many tutorials, `if ((i + 1) % 4 == 0) step()`, leaves three
// gradients lying: they leak into the next epoch's first step.
int epoch(nn::Module& model, optim::Optimizer& optimizer, const Task& task, bool handle_last_group) {
  constexpr int64_t kMicro = 7, kGroup = 4, kSize = 8;
  int steps = 0;
  for (int64_t i = 0; i < kMicro; ++i) {
    const int64_t in_group = handle_last_group ? std::min(kGroup, kMicro - i / kGroup * kGroup) : kGroup;
    const Tensor loss =
        mse_loss(model(task.x.narrow(0, i * kSize, kSize)), task.y.narrow(0, i * kSize, kSize));
    (loss / static_cast<double>(in_group)).backward();
    const bool full = (i + 1) % kGroup == 0, last = handle_last_group && i + 1 == kMicro;
    if (!full && !last) continue;
    optimizer.step();
    optimizer.zero_grad();
    ++steps;
  }
  return steps;
}

void last_group(Device device) {
  lesson::section(3, "The last group");
  const Task task(device);
  for (const bool handled : {false, true}) {
    nn::Sequential model = lesson::small_net();
    model->to(device);
    optim::SGD optimizer(model->parameters(), {.lr = 0.01});
    const int steps = epoch(*model.ptr(), optimizer, task, handled);
    const bool left = model->parameters()[0].grad().defined();
    fmt::print("{}: {} steps, gradients left for the next epoch: {}\n",
               handled ? "stepped at the end" : "modulo alone", steps, left ? "yes" : "no");
  }
}
// [/snippet last_group]

// [snippet counts]
// Means of unequal groups: sum the losses, divide by the count of the whole group.
void counts(Device device) {
  lesson::section(4, "Micro-batches of unequal size");
  Tensor w = zeros({}, {.device = device}).requires_grad_();
  const Tensor few = full({10}, 1.0, {.device = device}), many = full({100}, 2.0, {.device = device});
  ((w * few).mean() / 2).backward();
  ((w * many).mean() / 2).backward();
  const double naive = w.grad().item<double>();
  w.set_grad({});
  ((w * few).sum() / 110).backward();
  ((w * many).sum() / 110).backward();
  fmt::print("mean of means {:.6f}, sum by count {:.6f}\n", naive, w.grad().item<double>());
  lesson::result("mean_of_means", naive);
}
// [/snippet counts]

int main(int argc, char** argv) {
  lesson::Flags flags{.unused = "--epochs, --batch-size, --data and --quick"};
  return lesson::run(argc, argv, "Lesson 07: gradient accumulation", flags, [&] {
    const Device device = select_device(flags.device);
    std::printf("device: %s\n", to_string(device).c_str());
    equal_to_the_big_batch(device);
    forgetting(device);
    last_group(device);
    counts(device);
  });
}
