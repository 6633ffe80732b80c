#include <gradus/backends/sim/scheduler.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace gradus::sim {

Point Scheduler::submit(Queue& queue, Task task, bool caller_waits) {
  if (task.engine != kNoEngine) start(engines_[task.engine]);  // first: it may fail
  queue.tasks.push_back(std::move(task));
  ++queue.submitted;
  caller_waits_ = caller_waits;
  if (queue.tasks.size() == 1) advance(&queue);
  caller_waits_ = false;
  return queue.end();
}

// A host that waits does a copy itself where its engine still sleeps: waking the engine, and being woken by
// it, takes longer than copying a megabyte.
bool Scheduler::wait(const Point& point) {
  if (point.passed()) return true;
  std::unique_lock lock(mutex_);
  while (!stopping_ && !point.passed()) {
    if (Engine* engine = idle_copy_engine(*point.queue)) {
      std::erase_if(engine->ready, [&](const Ready& r) { return r.queue == point.queue; });
      run_first_task(*engine, *point.queue, lock);
    } else {
      ++waiting_hosts_;
      passed_.wait(lock);
      --waiting_hosts_;
    }
  }
  return point.passed();
}

// The engine that is to run the queue's first task next and has not begun, if it is a copy engine.
Scheduler::Engine* Scheduler::idle_copy_engine(const Queue& queue) {
  const int number = queue.tasks.empty() ? kNoEngine : queue.tasks.front().engine;
  if (number == kNoEngine || number == kCompute || jitter_us_ > 0) return nullptr;
  Engine& engine = engines_[number];
  const bool next = !engine.ready.empty() && engine.ready.front().queue == &queue;
  return next && !engine.busy ? &engine : nullptr;
}

// Starts what can start now: the queue's first task, and what that makes possible elsewhere.
void Scheduler::advance(Queue* first) {
  std::vector<Queue*> to_advance{first};
  while (!to_advance.empty()) {
    Queue& queue = *to_advance.back();
    to_advance.pop_back();
    while (!queue.tasks.empty() && start_first_task(queue, to_advance)) {
    }
  }
}

// True if the task was mere bookkeeping and is done.
bool Scheduler::start_first_task(Queue& queue, std::vector<Queue*>& to_advance) {
  Task& task = queue.tasks.front();
  for (; !task.after.empty(); task.after.pop_back())
    if (const Point& point = task.after.back(); !point.passed()) {
      point.queue->followers.push_back(&queue);
      return false;
    }
  if (task.engine != kNoEngine) {
    make_ready(queue);
    return false;
  }
  if (task.work) task.work();
  finish_first_task(queue, to_advance);
  return true;
}

void Scheduler::finish_first_task(Queue& queue, std::vector<Queue*>& to_advance) {
  queue.tasks.pop_front();
  queue.completed.fetch_add(1);
  const std::vector<Queue*> followers = std::exchange(queue.followers, {});
  to_advance.insert(to_advance.end(), followers.begin(), followers.end());
  if (waiting_hosts_ > 0) passed_.notify_all();
}

void Scheduler::make_ready(Queue& queue) {
  Engine& engine = engines_[queue.tasks.front().engine];
  Clock::time_point not_before{};
  if (jitter_us_ > 0) {
    random_ ^= random_ << 13, random_ ^= random_ >> 7, random_ ^= random_ << 17;  // xorshift64
    const double delay = jitter_us_ * static_cast<double>(random_ >> 11) * 0x1p-53;
    not_before = Clock::now() + std::chrono::nanoseconds(static_cast<int64_t>(1000 * delay));
  }
  engine.ready.push_back({&queue, not_before});
  if (!caller_waits_ || idle_copy_engine(queue) != &engine) engine.wake.notify_one();
}

void Scheduler::start(Engine& engine) {
  if (!engine.thread.joinable() && !stopping_)
    engine.thread = std::thread([this, &engine] { run_engine(engine); });
}

void Scheduler::run_engine(Engine& engine) {
  std::unique_lock lock(mutex_);
  while (Queue* queue = next_ready(engine, lock)) run_first_task(engine, *queue, lock);
}

// Runs, without the lock, the queue's first task, which the engine's list no longer holds. It stays in the
// queue (a deque's front does not move) until it is finished.
void Scheduler::run_first_task(Engine& engine, Queue& queue, std::unique_lock<std::mutex>& lock) {
  engine.busy = true;
  Task& task = queue.tasks.front();
  lock.unlock();
  task.work();
  lock.lock();
  engine.busy = false;
  if (!engine.ready.empty()) engine.wake.notify_one();  // the host did this one, and the engine waited
  finish(queue);
}

// The queue's first task was run: what waited for it may start.
void Scheduler::finish(Queue& queue) {
  std::vector<Queue*> to_advance{&queue};
  finish_first_task(queue, to_advance);
  for (Queue* q : to_advance) advance(q);
}

// The next queue whose first task may start, or nullptr when the engine is to end.
Queue* Scheduler::next_ready(Engine& engine, std::unique_lock<std::mutex>& lock) {
  for (;;) {
    if (stopping_) return nullptr;
    const Clock::time_point now =
        jitter_us_ > 0 || !engine.ready.empty() ? Clock::now() : Clock::time_point{};
    Clock::time_point soonest = Clock::time_point::max();
    for (auto it = engine.ready.begin(); it != engine.ready.end() && !engine.busy; ++it) {
      if (it->not_before <= now) {
        Queue* queue = it->queue;
        engine.ready.erase(it);
        return queue;
      }
      soonest = std::min(soonest, it->not_before);
    }
    if (engine.ready.empty() || engine.busy) {
      engine.wake.wait(lock);
    } else {
      engine.wake.wait_until(lock, soonest);
    }
  }
}

void Scheduler::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    passed_.notify_all();
    for (Engine& engine : engines_) engine.wake.notify_all();
  }
  for (Engine& engine : engines_)
    if (engine.thread.joinable()) engine.thread.join();
}

}  // namespace gradus::sim
