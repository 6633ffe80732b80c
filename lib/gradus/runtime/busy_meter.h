// Turns a running total of busy seconds into the percentage since the reading before.
#pragma once
#include <algorithm>
#include <chrono>
#include <mutex>

namespace gradus::runtime {

/// Thread-safe. Its first reading counts from when it was made.
class BusyMeter {
 public:
  /// Percent from 0 to 100; `busy` is the total of seconds until now, `units` how many can be busy at once.
  int read(double busy, int units = 1) {
    std::lock_guard lock(mutex_);
    const Clock::time_point now = Clock::now();
    const double wall = std::chrono::duration<double>(now - last_).count();
    const double share = wall > 0 ? (busy - last_busy_) / (wall * units) : 0;
    last_ = now;
    last_busy_ = busy;
    return static_cast<int>(std::clamp(100 * share, 0.0, 100.0) + 0.5);
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::mutex mutex_;
  Clock::time_point last_ = Clock::now();
  double last_busy_ = 0;
};

}  // namespace gradus::runtime
