// The one hook through which launch() tells others what it does: profiler, compile, tests.
#pragma once
#include <gradus/runtime/stream.h>
#include <gradus/runtime/tensor_arg.h>

#include <atomic>
#include <cstdint>

namespace gradus::runtime {

/// One operand of a launch.
struct LaunchOperand {
  const TensorArg* tensor;
  Access access;
};

/// What launch() is about to run. Pointers are valid during the call only.
struct LaunchRecord {
  const char* name;
  Stream stream;
  const LaunchOperand* operands;
  int operand_count;
};

/// Told of every launch, before (begin) and after (end) it is queued, on the launching thread.
class LaunchObserver {
 public:
  virtual ~LaunchObserver() = default;
  virtual void begin(const LaunchRecord& record) = 0;
  virtual void end(const LaunchRecord& record) = 0;
};

/// Adds or removes an observer. Remove it only when no launch is running.
void add_observer(LaunchObserver* observer);
void remove_observer(LaunchObserver* observer);

namespace detail {
inline std::atomic<int> observer_count{0};  // launch() looks at this alone while nobody listens
void notify_begin(const LaunchRecord& record);
void notify_end(const LaunchRecord& record);
}  // namespace detail

}  // namespace gradus::runtime
