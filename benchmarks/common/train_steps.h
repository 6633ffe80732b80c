// The library's train steps that have a floor (floors.h): the same models, batches and optimizer.
#pragma once
#include <common/floors.h>

#include <functional>

namespace floors {

/// The seeds' CNN, channels-last or not.
std::unique_ptr<TrainStep> library_cnn(int64_t batch, bool channels_last);
std::unique_ptr<TrainStep> library_simple_net(int64_t batch);
std::unique_ptr<TrainStep> library_small_net(int64_t batch);

/// Runs `make()`'s step with `threads` threads: makes it once per thread count, since oneDNN plans for a
/// number of threads, and checks that its loss falls before anything is timed.
TrainStep& prepared(const char* name, int threads, const std::function<std::unique_ptr<TrainStep>()>& make);

}  // namespace floors
