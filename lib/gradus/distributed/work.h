// A collective that may still be running.
#pragma once
#include <gradus/distributed/failure.h>

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>

namespace gradus::distributed {

/// A handle to a queued collective, as torch.distributed.Work. It need not be kept.
class Work {
 public:
  Work() : state_(std::make_shared<State>()) {}

  /// Blocks until the collective is over on this rank, and throws what it ended with: every time it is asked.
  void wait() const;
  /// True when wait() would not block.
  bool is_completed() const;
  /// What wait() throws; none while it runs and where all went well.
  std::exception_ptr exception() const;

  /// For the group: it is over. Only the first call counts.
  void finish(std::optional<Failure> failure = {}) const;

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool over = false;
    std::optional<Failure>
        failure;  // not an exception_ptr, which one thread would free while another reads it
  };
  std::shared_ptr<State> state_;
};

}  // namespace gradus::distributed
