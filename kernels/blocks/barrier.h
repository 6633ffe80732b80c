// The barrier of ThreadBlock.
#pragma once
#include <condition_variable>
#include <mutex>

namespace gradus::kernels {

/// A reusable barrier whose only happens-before edges are its own, so that ThreadSanitizer sees a missing
/// sync. std::barrier of libstdc++ 12 orders more than it must and hides most of them.
class Barrier {
 public:
  explicit Barrier(int count) : expected_(count) {}

  /// Returns when all threads that have not dropped out have arrived.
  void wait() {
    std::unique_lock lock(mutex_);
    const long phase = phase_;
    if (++arrived_ == expected_) return open();
    opened_.wait(lock, [&] { return phase_ != phase; });
  }

  /// The calling thread will not come back: the others go on without it.
  void drop() {
    const std::unique_lock lock(mutex_);
    if (--expected_ == arrived_ && arrived_ > 0) open();
  }

 private:
  void open() {
    arrived_ = 0;
    ++phase_;
    opened_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable opened_;
  int expected_, arrived_ = 0;
  long phase_ = 0;
};

}  // namespace gradus::kernels
