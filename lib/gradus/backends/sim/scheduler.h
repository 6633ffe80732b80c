// Queues and engines: in which order the simulated devices' work runs, and on which thread.
//
// A stream is a queue of tasks. Its first task runs when all that it waits for is done, on an engine: a
// thread that does one thing at a time, as the units of a GPU do. One compute engine serves all devices, so
// that kernels of eight devices do not share two cores; each device has a copy engine per direction. One
// mutex guards it all; work runs outside of it.
#pragma once
#include <gradus/backends/sim/memory.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace gradus::sim {

struct Queue;
struct Capture;

/// A place in a stream: behind its first `sequence` tasks.
struct Point {
  Queue* queue = nullptr;
  uint64_t sequence = 0;
  bool passed() const;
};

/// What a task does, on its engine's thread; does not throw.
using Work = std::function<void()>;

struct Task {
  int engine;                // kNoEngine: nothing to run but bookkeeping
  Work work;                 // may be empty
  std::vector<Point> after;  // besides the tasks before it in its stream
};

/// A stream's tasks. All but `completed` is guarded by the scheduler's mutex.
struct Queue {
  Queue(int device, int64_t id, bool blocking, int number)
      : device(device), id(id), blocking(blocking), number(number) {}
  const int device;
  const int64_t id;
  const bool blocking;     // keeps the legacy rule with its device's default stream
  const int number;        // counts all queues of the process
  std::deque<Task> tasks;  // the first is running or waits
  uint64_t submitted = 0;
  std::atomic<uint64_t> completed{0};
  std::vector<Queue*> followers;     // whose first task waits for a point in this queue
  std::shared_ptr<Capture> capture;  // what is queued goes there instead

  Point end() { return {this, submitted}; }
};

inline bool Point::passed() const { return !queue || queue->completed.load() >= sequence; }

class Scheduler {
 public:
  static constexpr int kNoEngine = -1, kCompute = 0;
  static int copy_in(int device) { return 1 + 2 * device; }
  static int copy_out(int device) { return 2 + 2 * device; }
  static constexpr int kEngines = 1 + 2 * DeviceMemory::kMaxDevices;

  Scheduler() = default;
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// Held by the caller of submit(), so that several tasks and what belongs to them are queued as one.
  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }
  /// Queues a task and returns the point behind it. Under lock(). With `caller_waits`, which promises a
  /// wait() for that point, a sleeping copy engine is left asleep: wait() does the copy.
  Point submit(Queue& queue, Task task, bool caller_waits = false);
  /// Blocks until the point is passed, and returns true; false once stop() was called, for then it may never
  /// be. Not under lock().
  bool wait(const Point& point);
  /// Tasks that begin late by up to `us` microseconds, at random. Under lock().
  void set_jitter(double us) { jitter_us_ = us; }
  /// Ends the engines when the task that each runs is done; what is queued is lost.
  void stop();
  /// True once stop() was called: a task that takes its time then ends early.
  const std::atomic<bool>& stopping() const { return stopping_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Ready {
    Queue* queue;
    Clock::time_point not_before;
  };
  struct Engine {
    std::deque<Ready> ready;
    std::condition_variable wake;
    std::thread thread;
    bool busy = false;  // a task of it runs, on its thread or on that of a host that waits
  };

  void advance(Queue* first);
  void finish(Queue& queue);
  bool start_first_task(Queue& queue, std::vector<Queue*>& to_advance);
  void finish_first_task(Queue& queue, std::vector<Queue*>& to_advance);
  void make_ready(Queue& queue);
  void start(Engine& engine);
  Engine* idle_copy_engine(const Queue& queue);
  void run_engine(Engine& engine);
  void run_first_task(Engine& engine, Queue& queue, std::unique_lock<std::mutex>& lock);
  Queue* next_ready(Engine& engine, std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable passed_;
  int waiting_hosts_ = 0;
  std::array<Engine, kEngines> engines_;
  std::atomic<bool> stopping_{false};  // written under the mutex
  bool caller_waits_ = false;          // during submit()
  double jitter_us_ = 0;
  uint64_t random_ = 0x9E3779B97F4A7C15;  // of the jitter
};

}  // namespace gradus::sim
