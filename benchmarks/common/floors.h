// Floors: the train steps of lessons 03 and 04 written against oneDNN's primitives alone. No tensors, tape,
// dispatch or allocation, every primitive and buffer made beforehand, weights kept in the layout oneDNN likes
// best. What the library adds to these times is its own cost.
#pragma once
#include <cstdint>
#include <memory>

namespace floors {

/// One train step of a model on a fixed batch: forward, loss, backward, Adam.
class TrainStep {
 public:
  virtual ~TrainStep() = default;
  virtual float run() = 0;  ///< returns the loss
};

/// The seeds' CNN on (batch, 1, 28, 28), channels-last, dropout included. The convolutions, ReLUs and the
/// rest are one primitive each, as in a framework that fuses nothing.
std::unique_ptr<TrainStep> cnn(int64_t batch);
/// A chain of Linear layers with ReLU between: sizes[0] -> sizes[1] -> …; cross-entropy if the last is above
/// 1, else MSE.
std::unique_ptr<TrainStep> mlp(int64_t batch, std::initializer_list<int64_t> sizes);

}  // namespace floors
