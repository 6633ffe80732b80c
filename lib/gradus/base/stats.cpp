#include <gradus/base/stats.h>

namespace gradus {

Stats detail::Counters::read() const {
  auto value = [](const std::atomic<int64_t>& c) { return c.load(std::memory_order_relaxed); };
  return {.launches = value(launches),
          .driver_allocations = value(driver_allocations),
          .driver_frees = value(driver_frees),
          .copies_h2d = value(copies_h2d),
          .copies_d2h = value(copies_d2h),
          .copies_d2d = value(copies_d2d),
          .bytes_h2d = value(bytes_h2d),
          .bytes_d2h = value(bytes_d2h),
          .bytes_d2d = value(bytes_d2d),
          .synchronizations = value(synchronizations),
          .all_reduces = value(all_reduces),
          .bytes_all_reduced = value(bytes_all_reduced)};
}

Stats stats() {
  Stats sum;
  for (const detail::Counters& slot : detail::counters) sum = sum + slot.read();
  return sum;
}

}  // namespace gradus
