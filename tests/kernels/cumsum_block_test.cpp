#include <kernels/cumsum_block.cuh>

#include "kernels/kernel_testing.h"

namespace gradus::kernels {
namespace {

template <class T>
struct CumSumKernel : ::testing::Test {};
TYPED_TEST_SUITE(CumSumKernel, FloatingTypes);

template <class T>
std::vector<double> reference(const std::vector<T>& x, Rows rows) {
  std::vector<double> y(x.size());
  for (int64_t r = 0; r < rows.count; ++r) {
    double sum = 0;
    for (int64_t i = 0; i < rows.length; ++i) {
      const auto at = static_cast<size_t>(rows.row(r).at(i));
      y[at] = sum += static_cast<double>(x[at]);
    }
  }
  return y;
}

TYPED_TEST(CumSumKernel, MatchesDouble) {
  using T = TypeParam;
  for (const Rows rows : {Rows{2, 67}, Rows{6, 5, 3}, Rows{1, 1}}) {
    const auto x = random_vector<T>(rows.count * rows.length);
    on_all_blocks<CumSum<T>>([&](Runner run) {
      std::vector<T> y(x.size());
      run(CumSum<T>{x.data(), y.data(), rows});
      expect_close(y, reference(x, rows), 4 * tolerance_of<T>());
    });
  }
}

TEST(CumSumEdges, Int64IsExact) {
  const std::vector<int64_t> x{int64_t{1} << 53, 1, 1, -5};
  on_all_blocks<CumSum<int64_t>>([&](Runner run) {
    std::vector<int64_t> y(4);
    run(CumSum<int64_t>{x.data(), y.data(), {1, 4}});
    const int64_t big = int64_t{1} << 53;
    EXPECT_EQ(y, (std::vector<int64_t>{big, big + 1, big + 2, big - 3}));
  });
}

}  // namespace
}  // namespace gradus::kernels
