// One walk over a loader's batches: the queue between workers and the caller. Internal to data/.
#pragma once
#include <gradus/data/batch_source.h>
#include <gradus/data/worker_pool.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace gradus::detail {

/// Takes the batches of a source in order, from a pool's threads (each fills a bounded queue of its own) or,
/// without a pool, on the calling thread.
class Epoch {
 public:
  /// `prefetch` is the length of each worker's queue; `timeout` in seconds, 0 for none.
  Epoch(std::unique_ptr<BatchSource> source, std::shared_ptr<WorkerPool> pool, size_t prefetch,
        double timeout);
  /// Waits until no worker is at work for this epoch.
  ~Epoch();
  Epoch(const Epoch&) = delete;
  Epoch& operator=(const Epoch&) = delete;

  /// The next batch, or nothing at the end. After an exception the epoch is over.
  std::optional<Example> next();
  /// Ends the epoch because its workers are wanted for another: next() then throws E-STATE.
  void supersede();

 private:
  // What a worker hands over: a batch, an exception, or (neither) that it has no more.
  struct Outcome {
    std::optional<Example> batch;
    std::exception_ptr error;
    bool is_last() const { return !batch; }
  };
  struct Queue {
    std::deque<Outcome> outcomes;
    std::condition_variable filled, drained;
  };

  std::optional<Example> next_from_workers();
  Outcome make(int worker, const char* whose) noexcept;
  void produce(int worker);
  bool push(Queue& queue, Outcome outcome);
  Outcome pop(int worker);
  void request_stop();
  void stop_and_wait();

  std::unique_ptr<BatchSource> source_;
  std::shared_ptr<WorkerPool> pool_;
  const size_t prefetch_;
  const double timeout_;
  std::vector<int> live_;  // workers that have batches left, in the order of their turns
  size_t turn_ = 0;
  bool over_ = false, superseded_ = false;

  std::mutex mutex_;  // of what follows
  std::vector<std::unique_ptr<Queue>> queues_;
  bool stopping_ = false;
};

}  // namespace gradus::detail
