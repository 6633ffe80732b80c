// Counters of what the library did. They have no noise and need no GPU, so tests of a claim count.
#pragma once
#include <atomic>
#include <cstdint>

namespace gradus {

/// A snapshot of counters; subtract two to count a region.
struct Stats {
  int64_t launches = 0;            ///< kernels started; a graph's replay is one, what it records counts too
  int64_t driver_allocations = 0;  ///< calls to a device's raw allocator (not served from the cache)
  int64_t driver_frees = 0;        ///< calls to a device's raw free
  int64_t copies_h2d = 0, copies_d2h = 0, copies_d2d = 0;  ///< copies by direction; cpu to cpu counts as d2d
  int64_t bytes_h2d = 0, bytes_d2h = 0, bytes_d2d = 0;     ///< bytes by direction
  int64_t synchronizations = 0;                    ///< host waits: synchronize(), .item(), blocking copies
  int64_t all_reduces = 0, bytes_all_reduced = 0;  ///< collectives of this process, and its tensors' bytes

  friend Stats operator+(Stats a, const Stats& b) { return a.add(b, 1); }
  friend Stats operator-(Stats a, const Stats& b) { return a.add(b, -1); }

 private:
  Stats& add(const Stats& b, int64_t sign) {
    launches += sign * b.launches;
    driver_allocations += sign * b.driver_allocations, driver_frees += sign * b.driver_frees;
    copies_h2d += sign * b.copies_h2d, copies_d2h += sign * b.copies_d2h, copies_d2d += sign * b.copies_d2d;
    bytes_h2d += sign * b.bytes_h2d, bytes_d2h += sign * b.bytes_d2h, bytes_d2d += sign * b.bytes_d2d;
    synchronizations += sign * b.synchronizations;
    all_reduces += sign * b.all_reduces, bytes_all_reduced += sign * b.bytes_all_reduced;
    return *this;
  }
};

/// The counters of the process now: the sum over all devices. One device's: stats(device), in
/// runtime/device_stats.h.
Stats stats();

namespace detail {
// Live counters. Relaxed: a count is exact once the threads that added to it were joined or synchronised.
struct Counters {
  std::atomic<int64_t> launches{0}, driver_allocations{0}, driver_frees{0}, copies_h2d{0}, copies_d2h{0},
      copies_d2d{0}, bytes_h2d{0}, bytes_d2h{0}, bytes_d2d{0}, synchronizations{0}, all_reduces{0},
      bytes_all_reduced{0};
  Stats read() const;
};

// A set for each device, by its number (runtime/device_stats.h); what devices are is not known down here.
inline constexpr int kCounterSlots = 384;
inline Counters counters[kCounterSlots];

inline void count(std::atomic<int64_t>& counter, int64_t n = 1) {
  counter.fetch_add(n, std::memory_order_relaxed);
}
}  // namespace detail

}  // namespace gradus
