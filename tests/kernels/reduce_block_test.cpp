#include <kernels/reduce_block.cuh>
#include <numeric>

#include "kernels/kernel_testing.h"

namespace gradus::kernels {
namespace {

template <class T>
struct RowReduction : ::testing::Test {};
TYPED_TEST_SUITE(RowReduction, FloatingTypes);

// What the reduction of each row of x is, by a function of the row's values.
template <class T, class F>
std::vector<double> by_row(const std::vector<T>& x, Rows rows, F f) {
  std::vector<double> result;
  for (int64_t r = 0; r < rows.count; ++r) {
    std::vector<double> row;
    for (int64_t i = 0; i < rows.length; ++i)
      row.push_back(static_cast<double>(x[static_cast<size_t>(rows.row(r).at(i))]));
    result.push_back(f(row));
  }
  return result;
}

double sum_of(const std::vector<double>& v) { return std::accumulate(v.begin(), v.end(), 0.0); }

template <class Body, class T, class F>
void check(const std::vector<T>& x, Rows rows, double tolerance, F f) {
  const auto want = by_row(x, rows, f);
  on_all_blocks<Body>([&](Runner run) {
    std::vector<T> y(want.size());
    run(Body{x.data(), y.data(), rows});
    expect_close(y, want, tolerance);
  });
}

TYPED_TEST(RowReduction, MatchesDouble) {
  using T = TypeParam;
  const Rows rows{3, 101};
  const auto x = random_vector<T>(303);
  check<RowSum<T>>(x, rows, 4 * tolerance_of<T>(), sum_of);
  check<RowMean<T>>(x, rows, tolerance_of<T>(), [](auto v) { return sum_of(v) / 101; });
  check<RowMax<T>>(x, rows, 0, [](auto v) { return *std::max_element(v.begin(), v.end()); });
  check<RowMin<T>>(x, rows, 0, [](auto v) { return *std::min_element(v.begin(), v.end()); });
}

TYPED_TEST(RowReduction, OverAnInnerDimension) {
  using T = TypeParam;
  check<RowSum<T>>(random_vector<T>(42), {6, 7, 3}, 4 * tolerance_of<T>(), sum_of);
}

TEST(RowReductionEdges, EmptyRows) {
  on_all_blocks<RowSum<float>>([&](Runner run) {
    std::vector<float> sum(2, 9.0f), mean(2, 9.0f);
    run(RowSum<float>{nullptr, sum.data(), {2, 0}});
    run(RowMean<float>{nullptr, mean.data(), {2, 0}});
    expect_close(sum, {0, 0}, 0);
    EXPECT_TRUE(std::isnan(mean[0]) && std::isnan(mean[1]));
  });
}

TEST(RowReductionEdges, IntegersAreExact) {
  const std::vector<int64_t> x{16777217, 0, 1, int64_t{1} << 53, 1, 1};
  const std::vector<uint8_t> flags{1, 0, 1, 1, 1, 1};
  using SumInt = RowReduce<int64_t, int64_t, Reduction::sum>;
  using CountTrue = RowReduce<bool, int64_t, Reduction::sum>;
  on_all_blocks<SumInt>([&](Runner run) {
    std::vector<int64_t> y(2);
    run(SumInt{x.data(), y.data(), {2, 3}});
    EXPECT_EQ(y, (std::vector<int64_t>{16777218, (int64_t{1} << 53) + 2}));
    run(CountTrue{reinterpret_cast<const bool*>(flags.data()), y.data(), {2, 3}});
    EXPECT_EQ(y, (std::vector<int64_t>{2, 3}));
  });
}

TEST(RowReductionEdges, HalfSumsInFloat) {  // 2048 + 1 is 2048 in float16
  const std::vector<Half> x(4096, Half(1.0f));
  std::vector<Half> y(1);
  run_serial(RowSum<Half>{x.data(), y.data(), {1, 4096}});
  EXPECT_EQ(static_cast<float>(y[0]), 4096.0f);
}

TEST(RowReductionEdges, NaNPropagates) {
  std::vector<float> x(70, 1.0f);
  x[66] = std::numeric_limits<float>::quiet_NaN();
  on_all_blocks<RowMax<float>>([&](Runner run) {
    std::vector<float> high(1), low(1);
    run(RowMax<float>{x.data(), high.data(), {1, 70}});
    run(RowMin<float>{x.data(), low.data(), {1, 70}});
    EXPECT_TRUE(std::isnan(high[0]) && std::isnan(low[0]));
  });
}

TYPED_TEST(RowReduction, FindsTheFirstOfTheLargest) {
  using T = TypeParam;
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = INFINITY;
  std::vector<T> x;
  for (const float v :
       {3.0f, 7.0f, 7.0f, 1.0f, 1.0f, -inf, -inf, -inf, -inf, -inf, 1.0f, nan, 9.0f, nan, inf})
    x.push_back(static_cast<T>(v));
  on_all_blocks<RowArgMax<T>>([&](Runner run) {
    std::vector<int64_t> high(3), low(3);
    std::vector<T> value(3);
    run(RowArgMax<T>{x.data(), value.data(), high.data(), {3, 5}});
    run(RowArgMin<T>{x.data(), nullptr, low.data(), {3, 5}});
    EXPECT_EQ(high, (std::vector<int64_t>{1, 0, 1}));
    EXPECT_EQ(low, (std::vector<int64_t>{3, 0, 1}));
    expect_close(value, {7, -inf, nan}, 0);
  });
}

}  // namespace
}  // namespace gradus::kernels
