// The mean of an epoch from the means of its batches.
#pragma once
#include <cstdint>
#include <limits>

namespace gradus {

/// Weighs each batch by its samples. A plain average of batch means counts a short last batch as a full one,
/// and dividing by the dataset's size is wrong where a sampler takes a part of it.
class RunningMean {
 public:
  /// A value that is the mean of `samples` samples.
  void add(double mean, int64_t samples) {
    sum_ += mean * static_cast<double>(samples);
    samples_ += samples;
  }
  int64_t samples() const { return samples_; }
  /// NaN before the first sample.
  double value() const {
    return samples_ > 0 ? sum_ / static_cast<double>(samples_) : std::numeric_limits<double>::quiet_NaN();
  }

 private:
  double sum_ = 0;
  int64_t samples_ = 0;
};

}  // namespace gradus
