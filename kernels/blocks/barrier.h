// The barrier of ThreadBlock.
#pragma once
#include <atomic>
#include <condition_variable>
#include <mutex>

namespace gradus::kernels {

/// A reusable barrier that orders what threads did before it before what they do after it, and nothing else,
/// so that ThreadSanitizer sees every missing sync. libstdc++ 12's std::barrier orders more and hides most of
/// them; so does a single mutex, which a slow thread on its way out takes after a fast one has come in again.
/// Hence two gates, used in turn.
class Barrier {
 public:
  explicit Barrier(int count) : expected_(count) {}

  /// Returns when all threads that have not dropped out have arrived.
  void wait() {
    Gate& gate = current();
    std::unique_lock lock(gate.mutex);
    const long opened = gate.opened;
    if (++gate.arrived == expected_.load(std::memory_order_relaxed)) return open(gate);
    gate.open.wait(lock, [&] { return gate.opened != opened; });
  }

  /// The calling thread will not come back: the others go on without it.
  void drop() {
    Gate& gate = current();
    const std::unique_lock lock(gate.mutex);
    const int left = expected_.fetch_sub(1, std::memory_order_relaxed) - 1;
    if (gate.arrived == left && left > 0) open(gate);
  }

 private:
  struct Gate {
    std::mutex mutex;
    std::condition_variable open;
    int arrived = 0;
    long opened = 0;  // how often
  };

  // The gate that the caller has to pass next; it cannot change before the caller has come.
  Gate& current() { return gates_[phase_.load(std::memory_order_relaxed) % 2]; }

  void open(Gate& gate) {
    gate.arrived = 0;
    ++gate.opened;
    phase_.fetch_add(1, std::memory_order_relaxed);
    gate.open.notify_all();
  }

  Gate gates_[2];
  std::atomic<int> expected_;
  std::atomic<long> phase_{0};
};

}  // namespace gradus::kernels
