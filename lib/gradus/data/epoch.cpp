#include <gradus/data/epoch.h>

#include <algorithm>
#include <chrono>
#include <numeric>

namespace gradus::detail {

Epoch::Epoch(std::unique_ptr<BatchSource> source, std::shared_ptr<WorkerPool> pool, size_t prefetch,
             double timeout)
    : source_(std::move(source)), pool_(std::move(pool)), prefetch_(prefetch), timeout_(timeout) {
  if (!pool_) return;
  live_.resize(static_cast<size_t>(pool_->size()));
  std::iota(live_.begin(), live_.end(), 0);
  for (int w = 0; w < pool_->size(); ++w) queues_.push_back(std::make_unique<Queue>());
  pool_->start([this](int worker) { produce(worker); });
}

Epoch::~Epoch() { stop_and_wait(); }

std::optional<Example> Epoch::next() {
  GRADUS_CHECK(!superseded_, "E-STATE", "DataLoader: this epoch ended when the next one began",
               hint("with persistent_workers a loader runs one epoch at a time; use two loaders"));
  if (over_) return {};
  if (pool_) return next_from_workers();
  Outcome outcome = make(0, "");
  over_ = outcome.is_last();
  if (outcome.error) std::rethrow_exception(outcome.error);
  return std::move(outcome.batch);
}

std::optional<Example> Epoch::next_from_workers() {
  while (!live_.empty()) {
    Outcome outcome = pop(live_[turn_]);
    if (outcome.error) {
      request_stop();
      std::rethrow_exception(outcome.error);
    }
    if (outcome.batch) {
      turn_ = (turn_ + 1) % live_.size();
      return std::move(outcome.batch);
    }
    live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(turn_));
    if (turn_ == live_.size()) turn_ = 0;
  }
  over_ = true;
  return {};
}

void Epoch::supersede() {
  superseded_ = true;
  stop_and_wait();
}

Epoch::Outcome Epoch::make(int worker, const char* whose) noexcept {
  try {
    try {
      return {source_->next(worker), nullptr};
    } catch (...) {
      rethrow_with_context(*whose ? str("DataLoader ", whose, " ", worker, ": ") : "DataLoader: ");
    }
  } catch (...) {
    return {{}, std::current_exception()};
  }
}

void Epoch::produce(int worker) {
  Queue& queue = *queues_[static_cast<size_t>(worker)];
  while (true) {
    Outcome outcome = make(worker, "worker");
    const bool last = outcome.is_last();
    if (!push(queue, std::move(outcome)) || last) return;
  }
}

// False if the epoch was stopped.
bool Epoch::push(Queue& queue, Outcome outcome) {
  std::unique_lock lock(mutex_);
  queue.drained.wait(lock, [&] { return stopping_ || queue.outcomes.size() < prefetch_; });
  if (stopping_) return false;
  queue.outcomes.push_back(std::move(outcome));
  lock.unlock();
  queue.filled.notify_one();
  return true;
}

Epoch::Outcome Epoch::pop(int worker) {
  Queue& queue = *queues_[static_cast<size_t>(worker)];
  std::unique_lock lock(mutex_);
  const auto is_filled = [&] { return !queue.outcomes.empty(); };
  const std::chrono::duration<double> patience(
      std::min(timeout_, 1e8));  // 3 years; the clock's count must hold it
  if (timeout_ == 0) {
    queue.filled.wait(lock, is_filled);
  } else if (!queue.filled.wait_for(lock, patience, is_filled)) {
    lock.unlock();
    request_stop();
    GRADUS_FAIL("E-TIMEOUT", "DataLoader: worker ", worker, " made no batch within ", timeout_, " s",
                hint("the dataset may be slower than expected, or wait for something that does not come"));
  }
  Outcome outcome = std::move(queue.outcomes.front());
  queue.outcomes.pop_front();
  lock.unlock();
  queue.drained.notify_one();
  return outcome;
}

void Epoch::request_stop() {
  over_ = true;
  std::lock_guard lock(mutex_);
  stopping_ = true;
  for (auto& queue : queues_) queue->drained.notify_all();
}

void Epoch::stop_and_wait() {
  if (!pool_) return;
  request_stop();
  pool_->wait();
  pool_.reset();
  queues_.clear();
}

}  // namespace gradus::detail
