// Threads that wait for a job. Internal to data/.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace gradus::detail {

/// A fixed number of threads that all run the same job, each with its number. Parallel loops inside a job run
/// on its thread alone.
class WorkerPool {
 public:
  /// Throws E-WORKER if the system gives no more threads.
  explicit WorkerPool(int threads);
  /// Waits for the job that is running.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  int size() const { return static_cast<int>(threads_.size()); }
  /// Starts job(0) … job(size() - 1); the one before must be over. `job` must not throw.
  void start(std::function<void(int)> job);
  /// Returns when the job is over, and forgets it.
  void wait();

 private:
  void work(int worker);
  void close();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void(int)> job_;
  int64_t jobs_started_ = 0;
  int running_ = 0;
  bool closing_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace gradus::detail
