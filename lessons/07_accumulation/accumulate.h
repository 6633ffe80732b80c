// What the programs of lesson 07 share: a task, and a gradient made of several backward passes.
#pragma once
#include <gradus/gradus.h>

#include "../common/models.h"

using namespace gradus;

inline constexpr int64_t kBatch = 64;

// [snippet difference]
inline Tensor all_gradients(nn::Module& model) {
  std::vector<Tensor> grads;
  for (const Tensor& p : model.parameters()) grads.push_back(p.grad().reshape({-1}));
  return cat(grads);
}
// The largest difference in relation to the largest gradient.
inline double difference(const Tensor& a, const Tensor& b) {
  return ((a - b).abs().max() / b.abs().max()).item<double>();
}
// [/snippet difference]

struct Task {
  explicit Task(Device device) : x(randn({kBatch, 16}).to(device)), y(randn({kBatch, 1}).to(device)) {}
  Tensor x, y;
};

// [snippet accumulate]
// `steps` micro-batches, one gradient. divisor: what each micro-batch's mean loss is divided by.
inline Tensor accumulated(nn::Module& model, const Task& task, int64_t steps, double divisor) {
  model.zero_grad();
  const int64_t size = kBatch / steps;
  for (int64_t k = 0; k < steps; ++k) {
    const Tensor loss = mse_loss(model(task.x.narrow(0, k * size, size)), task.y.narrow(0, k * size, size));
    (loss / divisor).backward();  // adds to .grad
  }
  return all_gradients(model);
}
// [/snippet accumulate]
