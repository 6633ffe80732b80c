#include <gradus/base/error.h>
#include <gradus/base/parallel.h>
#include <gradus/data/worker_pool.h>

#include <system_error>

namespace gradus::detail {

WorkerPool::WorkerPool(int threads) {
  try {
    for (int worker = 0; worker < threads; ++worker) threads_.emplace_back([this, worker] { work(worker); });
  } catch (const std::system_error& error) {
    const size_t started = threads_.size();
    close();
    GRADUS_FAIL("E-WORKER", "DataLoader: the system gave ", started, " of ", threads,
                " worker threads: ", error.code().message(), hint("use fewer workers"));
  }
}

WorkerPool::~WorkerPool() { close(); }

void WorkerPool::close() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void WorkerPool::start(std::function<void(int)> job) {
  {
    std::lock_guard lock(mutex_);
    GRADUS_ASSERT(running_ == 0);
    job_ = std::move(job);
    ++jobs_started_;
    running_ = size();
  }
  changed_.notify_all();
}

void WorkerPool::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return running_ == 0; });
  job_ = {};
}

void WorkerPool::work(int worker) {
  SerialGuard serial;
  int64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return closing_ || jobs_started_ > seen; });
    if (jobs_started_ == seen) return;
    ++seen;
    lock.unlock();
    job_(worker);  // not changed before running_ is 0
    lock.lock();
    if (--running_ == 0) changed_.notify_all();
  }
}

}  // namespace gradus::detail
