#include <gradus/base/error.h>
#include <gradus/base/parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace gradus {
namespace {

using Parts = std::vector<std::pair<int64_t, int64_t>>;

// Sets the thread count for a test.
class Threads {
 public:
  explicit Threads(int n) : before_(get_num_threads()) { set_num_threads(n); }
  ~Threads() { set_num_threads(before_); }

 private:
  int before_;
};

Parts parts_of(int64_t begin, int64_t end, int64_t grain) {
  std::mutex mutex;
  Parts parts;
  parallel_for(begin, end, grain, [&](int64_t b, int64_t e) {
    std::lock_guard lock(mutex);
    parts.emplace_back(b, e);
  });
  std::sort(parts.begin(), parts.end());
  return parts;
}

TEST(Parallel, splits_by_range_grain_and_thread_count_alone) {
  Threads four(4);
  EXPECT_EQ(parts_of(0, 100, 10), (Parts{{0, 25}, {25, 50}, {50, 75}, {75, 100}}));
  EXPECT_EQ(parts_of(10, 20, 5), (Parts{{10, 15}, {15, 20}}));
  EXPECT_EQ(parts_of(0, 29, 10), (Parts{{0, 14}, {14, 29}}));
  EXPECT_EQ(parts_of(0, 19, 10), (Parts{{0, 19}}));
  EXPECT_EQ(parts_of(-3, 3, 1), (Parts{{-3, -2}, {-2, 0}, {0, 1}, {1, 3}}));
  EXPECT_EQ(parts_of(0, 3, 0), (Parts{{0, 1}, {1, 2}, {2, 3}}));  // a grain of 0 is one of 1
  EXPECT_EQ(parts_of(5, 5, 1), Parts{});
  EXPECT_EQ(parts_of(5, 4, 1), Parts{});
  set_num_threads(1);
  EXPECT_EQ(parts_of(0, 100, 1), (Parts{{0, 100}}));
}

TEST(Parallel, parts_cover_the_range_once_and_are_as_long_as_the_grain) {
  for (int threads : {1, 2, 3, 7}) {
    Threads set(threads);
    for (int64_t n : {1, 2, 9, 100, 1000})
      for (int64_t grain : {1, 3, 50}) {
        const Parts parts = parts_of(0, n, grain);
        int64_t at = 0;
        for (const auto& [b, e] : parts) {
          ASSERT_EQ(b, at);
          ASSERT_GE(e - b, std::min(grain, n));
          at = e;
        }
        ASSERT_EQ(at, n);
        ASSERT_LE(static_cast<int>(parts.size()), threads);
      }
  }
}

TEST(Parallel, uses_several_threads) {
  Threads three(3);
  std::mutex mutex;
  std::set<std::thread::id> ids;
  std::atomic<int> arrived{0};
  parallel_for(0, 3, 1, [&](int64_t, int64_t) {
    ++arrived;
    while (arrived < 3) std::this_thread::yield();  // ends only if all three run at once
    std::lock_guard lock(mutex);
    ids.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(ids.size(), 3u);
  EXPECT_EQ(ids.count(std::this_thread::get_id()), 1u);
}

TEST(Parallel, writes_of_the_workers_are_seen_by_the_caller) {
  Threads four(4);
  std::vector<int64_t> values(1000);
  for (int round = 0; round < 200; ++round) {
    parallel_for(0, 1000, 10, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) values[i] += i;
    });
  }
  EXPECT_EQ(std::accumulate(values.begin(), values.end(), int64_t{0}), 200 * 999 * 1000 / 2);
}

TEST(Parallel, nested_loops_run_on_the_calling_thread) {
  Threads two(2);
  EXPECT_FALSE(detail::in_parallel());
  std::atomic<int> wrong{0};
  parallel_for(0, 2, 1, [&](int64_t, int64_t) {
    if (!detail::in_parallel()) ++wrong;
    int calls = 0;
    const auto outer = std::this_thread::get_id();
    parallel_for(0, 100, 1, [&](int64_t b, int64_t e) {
      ++calls;
      if (std::this_thread::get_id() != outer || b != 0 || e != 100) ++wrong;
    });
    if (calls != 1) ++wrong;
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_FALSE(detail::in_parallel());
}

TEST(Parallel, an_exception_of_any_part_reaches_the_caller) {
  Threads four(4);
  for (int64_t bad = 0; bad < 4; ++bad) {
    std::atomic<int> finished{0};
    try {
      parallel_for(0, 4, 1, [&](int64_t b, int64_t) {
        if (b == bad) GRADUS_FAIL("E-TEST", "part ", b);
        ++finished;
      });
      ADD_FAILURE();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), "E-TEST");
      EXPECT_EQ(e.what(), "part " + std::to_string(bad));
    }
    EXPECT_EQ(finished, 3);
    EXPECT_FALSE(detail::in_parallel());
  }
  EXPECT_THROW(parallel_for(0, 4, 1, [](int64_t, int64_t) { throw std::runtime_error("each one"); }),
               std::runtime_error);
  EXPECT_EQ(parts_of(0, 4, 1).size(), 4u);  // and the next loop runs
}

TEST(Parallel, several_threads_may_start_loops_at_once) {
  Threads two(2);
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 3; ++c)
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round)
        parallel_for(0, 100, 10, [&](int64_t b, int64_t e) { sum += e - b; });
    });
  for (auto& c : callers) c.join();
  EXPECT_EQ(sum, 3 * 50 * 100);
}

TEST(Parallel, set_num_threads_refuses_less_than_one) {
  const int before = get_num_threads();
  EXPECT_GE(before, 1);
  for (int n : {0, -1}) {
    try {
      set_num_threads(n);
      ADD_FAILURE();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), "E-ARG");
      EXPECT_EQ(e.what(), "set_num_threads: expected at least 1, got " + std::to_string(n));
    }
  }
  EXPECT_EQ(get_num_threads(), before);
}

TEST(Parallel, a_serial_guard_keeps_loops_on_the_thread) {
  Threads four(4);
  {
    SerialGuard outer;
    {
      SerialGuard inner;
      EXPECT_EQ(parts_of(0, 100, 1), (Parts{{0, 100}}));
    }
    EXPECT_EQ(parts_of(0, 100, 1), (Parts{{0, 100}}));
    std::thread([] { EXPECT_EQ(parts_of(0, 100, 1).size(), 4u); }).join();  // others are not concerned
  }
  EXPECT_EQ(parts_of(0, 100, 1).size(), 4u);
}

}  // namespace
}  // namespace gradus
