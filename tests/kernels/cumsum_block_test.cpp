#include <kernels/cumsum_block.cuh>

#include "kernels/kernel_testing.h"

namespace gradus::kernels {
namespace {

// Rows of [outer, length, inner] along the middle dimension, summed up as the CPU would write it.
struct Case {
  int64_t outer, length, inner;
  bool reverse = false;

  template <class T>
  CumSumTask<T> task(const T* x, typename CumSumTask<T>::Y* y) const {
    CumSumTask<T> task{x, y, {}, outer * inner, length, inner, inner, reverse};
    task.rows.push_back(outer, length * inner, length * inner);
    task.rows.push_back(inner, 1, 1);
    return task;
  }
  template <class T>
  std::vector<double> reference(const std::vector<T>& x) const {
    std::vector<double> y(x.size());
    for (int64_t r = 0; r < outer * inner; ++r) {
      double sum = 0;
      for (int64_t k = 0; k < length; ++k) {
        const auto at = static_cast<size_t>(r / inner * length * inner + r % inner +
                                            (reverse ? length - 1 - k : k) * inner);
        y[at] = sum += static_cast<double>(x[at]);
      }
    }
    return y;
  }
};

template <class T>
struct CumSumKernel : ::testing::Test {};
TYPED_TEST_SUITE(CumSumKernel, FloatingTypes);

// A thread for each row, a block for each, and a block for each of several parts.
template <class T>
void run_all(Runner run, const Case& c, const std::vector<T>& x, std::vector<typename CumSumTask<T>::Y>& y,
             const std::vector<double>& want, double tolerance) {
  const CumSumTask<T> task = c.task(x.data(), y.data());
  std::vector<typename CumSumTask<T>::C> totals(static_cast<size_t>(task.count) * 4);
  run(CumSumColumns<T>{task});
  expect_close(y, want, tolerance);
  y.assign(y.size(), {});
  run(CumSumRows<T>{task, nullptr, 1, c.length});
  expect_close(y, want, tolerance);
  y.assign(y.size(), {});
  const int64_t part = std::max<int64_t>(1, (c.length + 2) / 3), parts = (c.length + part - 1) / part;
  run(CumSumTotals<T>{task, totals.data(), parts, part});
  run(CumSumRows<T>{task, totals.data(), parts, part});
  expect_close(y, want, tolerance);
}

TYPED_TEST(CumSumKernel, MatchesDouble) {
  using T = TypeParam;
  for (const Case& c : {Case{2, 67, 1}, Case{2, 5, 3}, Case{1, 1, 1}, Case{1, 300, 1, true}}) {
    const auto x = random_vector<T>(c.outer * c.length * c.inner);
    const auto want = c.reference(x);
    on_all_blocks<CumSumTotals<T>>([&](Runner run) {
      std::vector<T> y(x.size());
      run_all(run, c, x, y, want, 2 * tolerance_of<T>());
    });
  }
}

TEST(CumSumEdges, Int64IsExact) {
  const int64_t big = int64_t{1} << 53;
  const std::vector<int64_t> x{big, 1, 1, -5};
  on_all_blocks<CumSumTotals<int64_t>>([&](Runner run) {
    std::vector<int64_t> y(4);
    run(CumSumRows<int64_t>{Case{1, 4, 1}.task(x.data(), y.data()), nullptr, 1, 4});
    EXPECT_EQ(y, (std::vector<int64_t>{big, big + 1, big + 2, big - 3}));
  });
}

TEST(CumSumEdges, SmallIntegersGrow) {
  const std::vector<uint8_t> x{200, 100, 255};
  on_all_blocks<CumSumTotals<uint8_t>>([&](Runner run) {
    std::vector<int64_t> y(3);
    run_all(run, Case{1, 3, 1}, x, y, {200, 300, 555}, 0);
  });
}

}  // namespace
}  // namespace gradus::kernels
