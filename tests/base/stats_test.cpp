#include <gradus/base/stats.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace gradus {
namespace {

// Each counter by its own amount, so that none is mistaken for another.
TEST(Stats, every_counter_is_read_and_subtracted) {
  const Stats before = stats();
  auto& c = detail::counters[0];
  detail::count(c.launches);
  detail::count(c.driver_allocations, 2);
  detail::count(c.driver_frees, 3);
  detail::count(c.copies_h2d, 4);
  detail::count(c.copies_d2h, 5);
  detail::count(c.copies_d2d, 6);
  detail::count(c.bytes_h2d, 7);
  detail::count(c.bytes_d2h, 8);
  detail::count(c.bytes_d2d, 9);
  detail::count(c.synchronizations, 10);
  detail::count(c.all_reduces, 11);
  detail::count(c.bytes_all_reduced, 12);
  const Stats d = stats() - before;
  EXPECT_EQ(d.launches, 1);
  EXPECT_EQ(d.driver_allocations, 2);
  EXPECT_EQ(d.driver_frees, 3);
  EXPECT_EQ(d.copies_h2d, 4);
  EXPECT_EQ(d.copies_d2h, 5);
  EXPECT_EQ(d.copies_d2d, 6);
  EXPECT_EQ(d.bytes_h2d, 7);
  EXPECT_EQ(d.bytes_d2h, 8);
  EXPECT_EQ(d.bytes_d2d, 9);
  EXPECT_EQ(d.synchronizations, 10);
  EXPECT_EQ(d.all_reduces, 11);
  EXPECT_EQ(d.bytes_all_reduced, 12);
}

TEST(Stats, threads_lose_no_count) {
  const Stats before = stats();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < 10'000; ++i) detail::count(detail::counters[0].launches);
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ((stats() - before).launches, 40'000);
}

}  // namespace
}  // namespace gradus
