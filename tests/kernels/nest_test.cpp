#include <gtest/gtest.h>

#include <kernels/blocks/nest.cuh>

namespace gradus::kernels {
namespace {

TEST(Nest, ADivisorDividesAsTheProcessorDoes) {
  const int64_t edge = int64_t{1} << 31;
  const int64_t numbers[] = {0,        1,
                             2,        3,
                             5,        6,
                             7,        31,
                             32,       33,
                             641,      65535,
                             65536,    65537,
                             1000003,  edge - 2,
                             edge - 1, edge,
                             edge + 1, 2 * edge - 1,
                             2 * edge, 7 * edge + 3,
                             INT64_MAX};
  for (const int64_t d : numbers) {
    if (d == 0) continue;
    const Divisor divisor(d);
    for (const int64_t base : numbers) {
      for (const int64_t n : {base, base / d * d, base / d * d - 1}) {
        if (n < 0) continue;
        int64_t rest = n;
        EXPECT_EQ(divisor.remainder(rest), n % d) << n << " / " << d;
        EXPECT_EQ(rest, n / d) << n << " / " << d;
      }
    }
  }
}

TEST(Nest, PlacesOfATransposedAndABroadcastOperand) {
  TensorArg y, x, row;
  y.sizes = {3, 4, 5}, y.strides = {20, 5, 1};
  x.sizes = {3, 4, 5}, x.strides = {1, 15, 3};
  row.sizes = {5}, row.strides = {2};
  const Nest<3> nest(elementwise::make_loop<2>(y, {&x, &row}));
  ASSERT_EQ(nest.count, 60);
  for (int64_t i = 0; i < 60; ++i) {
    const auto at = nest.locate(i);
    EXPECT_EQ(at[0], i);
    EXPECT_EQ(at[1], i / 20 + i / 5 % 4 * 15 + i % 5 * 3);
    EXPECT_EQ(at[2], i % 5 * 2);
  }
}

}  // namespace
}  // namespace gradus::kernels
