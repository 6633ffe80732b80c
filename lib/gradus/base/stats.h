// Counters of what the library did. They have no noise and need no GPU, so tests of a claim count.
#pragma once
#include <atomic>
#include <cstdint>

namespace gradus {

/// A snapshot of the process-wide counters; subtract two to count a region.
struct Stats {
  int64_t launches = 0;            ///< kernels started
  int64_t driver_allocations = 0;  ///< calls to a device's raw allocator (not served from the cache)
  int64_t driver_frees = 0;        ///< calls to a device's raw free
  int64_t copies_h2d = 0, copies_d2h = 0, copies_d2d = 0;  ///< copies by direction; cpu to cpu counts as d2d
  int64_t bytes_h2d = 0, bytes_d2h = 0, bytes_d2d = 0;     ///< bytes by direction
  int64_t synchronizations = 0;  ///< host waits: synchronize(), .item(), blocking copies

  friend Stats operator-(Stats a, const Stats& b) {
    a.launches -= b.launches, a.driver_allocations -= b.driver_allocations, a.driver_frees -= b.driver_frees;
    a.copies_h2d -= b.copies_h2d, a.copies_d2h -= b.copies_d2h, a.copies_d2d -= b.copies_d2d;
    a.bytes_h2d -= b.bytes_h2d, a.bytes_d2h -= b.bytes_d2h, a.bytes_d2d -= b.bytes_d2d;
    a.synchronizations -= b.synchronizations;
    return a;
  }
};

/// The counters now.
Stats stats();

namespace detail {
// The live counters. Relaxed: a count is exact once the threads that added to it were joined or synchronised.
struct Counters {
  std::atomic<int64_t> launches{0}, driver_allocations{0}, driver_frees{0}, copies_h2d{0}, copies_d2h{0},
      copies_d2d{0}, bytes_h2d{0}, bytes_d2h{0}, bytes_d2d{0}, synchronizations{0};
};
inline Counters counters;
inline void count(std::atomic<int64_t>& counter, int64_t n = 1) {
  counter.fetch_add(n, std::memory_order_relaxed);
}
}  // namespace detail

}  // namespace gradus
