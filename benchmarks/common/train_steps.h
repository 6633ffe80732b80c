// The library's train steps that have a floor (floors.h): the same models, batches and optimizer.
#pragma once
#include <common/floors.h>
#include <gradus/tensor/tensor.h>

#include <functional>

namespace floors {

/// A train step of the library's, on any device.
class LibraryTrainStep : public TrainStep {
 public:
  virtual gradus::Tensor step() = 0;  ///< the loss, where the model is; the host does not wait for it
  float run() override { return step().item<float>(); }
};

/// The seeds' CNN, channels-last or not.
std::unique_ptr<LibraryTrainStep> library_cnn(int64_t batch, bool channels_last, gradus::Device device = {});
std::unique_ptr<TrainStep> library_simple_net(int64_t batch);
std::unique_ptr<TrainStep> library_small_net(int64_t batch);

/// Runs `make()`'s step with `threads` threads: makes it once per thread count, since oneDNN plans for a
/// number of threads, and checks that its loss falls before anything is timed.
TrainStep& prepared(const char* name, int threads, const std::function<std::unique_ptr<TrainStep>()>& make);

}  // namespace floors
