// The collectives that a group has yet to do. Internal to distributed/.
#pragma once
#include <gradus/distributed/backend.h>
#include <gradus/distributed/failure.h>
#include <gradus/distributed/signature.h>
#include <gradus/distributed/work.h>

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

namespace gradus::distributed {

/// Runs collectives in order, on a thread of its own. After a failure it is useless: what is queued, what
/// runs and what comes later throw it. A collective that still runs then waits for a rank that does not
/// answer, maybe for ever, so its thread is left behind; it keeps what it uses.
class CollectiveQueue {
 public:
  /// Asked on the queue's thread what it means that a collective threw this.
  using Explain = std::function<Failure(const std::exception& error)>;
  CollectiveQueue(std::shared_ptr<Backend> backend, int size, bool checking, Explain explain);
  /// Finishes what is queued.
  ~CollectiveQueue();

  /// `run` is called on the queue's thread; before, if checking, the ranks compare their signatures.
  Work push(Signature signature, std::function<void(Backend&)> run);
  void fail(Failure failure);
  std::optional<Failure> failure() const;
  /// Waits until nothing is queued.
  void finish();

  /// The collective that runs, or was the last to, and how long it has been running.
  struct Position {
    int64_t number = 0;
    bool running = false;
    std::string what;
    std::chrono::steady_clock::duration time{};
  };
  Position position() const;

 private:
  struct Task {
    Signature signature;
    std::function<void(Backend&)> run;
    Work work;
  };
  struct Shared {  // with the thread, which may outlive the queue
    std::shared_ptr<Backend> backend;
    int size;
    bool checking;
    Explain explain;

    mutable std::mutex mutex;
    std::condition_variable changed;
    std::deque<Task> tasks;  // the first one runs
    bool running = false, closing = false;
    std::chrono::steady_clock::time_point started;
    Signature last;
    int64_t pushed = 0;
    std::optional<Failure> failure;

    void work();
    void run_first(std::unique_lock<std::mutex>& lock);
    std::optional<Failure> attempt(const Task& task);
    void compare(const Signature& mine);
    void fail(Failure why);
  };

  std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace gradus::distributed
