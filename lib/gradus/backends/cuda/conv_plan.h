// Which of cuDNN's algorithms a convolution runs by. Internal to cuda/.
#pragma once
#include <gradus/backends/cuda/conv_calls.h>
#include <gradus/runtime/stream.h>

#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace gradus::cuda {

/// A problem's descriptors and the algorithms that can solve it, the best first, if there are any.
struct ConvPlan {
  struct Candidate {
    int algorithm;
    cudnnMathType_t math;
    size_t workspace;
  };
  ConvDescriptors descriptors;
  std::vector<Candidate> candidates{};
  bool measured = false;  ///< their order is from trying them
  bool fuses_bias;        ///< until cuDNN says that it does not
};

/// A device's handle with its plans. A handle serves one stream at a time, so run() holds a lock; it only
/// queues work. Never destroyed: at exit the driver may be gone.
class ConvDevice {
 public:
  static ConvDevice& of(Device device);

  /// True if cuDNN has an algorithm for it.
  bool can_run(const ConvProblem& problem);
  /// One product, queued on `stream`, in place of the output or (accumulate) added to it. True if it added
  /// the bias, which cuDNN does not do by every algorithm.
  bool run(const ConvProblem& problem, const ConvAddresses& addresses, bool accumulate, const Stream& stream);

 private:
  explicit ConvDevice(Device device);
  template <class Calls>
  bool run_as(ConvPlan& plan, const ConvProblem& problem, const ConvAddresses& addresses, bool accumulate,
              const Stream& stream);
  ConvPlan& plan_of(const ConvProblem& problem);

  Device device_;
  cudnnHandle_t handle_ = nullptr;
  std::mutex mutex_;
  std::map<ConvProblem, std::unique_ptr<ConvPlan>> plans_;
};

}  // namespace gradus::cuda
