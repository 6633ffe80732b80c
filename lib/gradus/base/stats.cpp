#include <gradus/base/stats.h>

namespace gradus {

Stats stats() {
  auto read = [](const std::atomic<int64_t>& c) { return c.load(std::memory_order_relaxed); };
  const auto& c = detail::counters;
  return {.launches = read(c.launches),
          .driver_allocations = read(c.driver_allocations),
          .driver_frees = read(c.driver_frees),
          .copies_h2d = read(c.copies_h2d),
          .copies_d2h = read(c.copies_d2h),
          .copies_d2d = read(c.copies_d2d),
          .bytes_h2d = read(c.bytes_h2d),
          .bytes_d2h = read(c.bytes_d2h),
          .bytes_d2d = read(c.bytes_d2d),
          .synchronizations = read(c.synchronizations)};
}

}  // namespace gradus
