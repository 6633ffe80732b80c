#include <gtest/gtest.h>

#include <kernels/blocks/loop_dims.cuh>

namespace gradus::kernels {
namespace {

TEST(WideDivisor, DividesAsTheProcessorDoes) {
  const int64_t small = int64_t{1} << 31;
  for (const int64_t d : {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{7}, int64_t{641}, small / 2 + 1,
                          small - 1, small, small + 1, int64_t{1} << 40}) {
    const WideDivisor divisor(d);
    for (const int64_t n : {int64_t{0}, int64_t{1}, int64_t{6}, d - 1, d, d + 1, 2 * d - 1, 3 * d, small - 1,
                            small, small + 5, (int64_t{1} << 50) + 3}) {
      EXPECT_EQ(divisor.divide(n), n / d) << n << " / " << d;
      if (n < small) {
        EXPECT_EQ(divisor.divide_small(static_cast<uint32_t>(n)), n / d) << n << " / " << d;
      }
    }
  }
}

TEST(LoopDims, PlacesOfElements) {
  LoopDims dims;
  dims.push_back(3, 100, 1);
  dims.push_back(4, 7, 50);
  dims.push_back(5, -2, 0);
  EXPECT_EQ(dims.numel(), 60);
  for (int64_t i = 0; i < 60; ++i) {
    const int64_t a = i / 20, b = i / 5 % 4, c = i % 5;
    EXPECT_EQ(dims.at(i).x, a * 100 + b * 7 - c * 2);
    EXPECT_EQ(dims.at(i).y, a + b * 50);
    EXPECT_EQ(dims.x_of_small(static_cast<uint32_t>(i)), dims.at(i).x);
  }
}

TEST(LoopDims, MoreElementsThan32BitsCount) {
  LoopDims dims;
  dims.push_back(4, int64_t{1} << 40, 0);
  dims.push_back((int64_t{1} << 31) + 2, 1, 0);
  const int64_t row = (int64_t{1} << 31) + 2;
  EXPECT_EQ(dims.at(3 * row + 1).x, 3 * (int64_t{1} << 40) + 1);
  EXPECT_EQ(dims.at(row - 1).x, row - 1);
}

}  // namespace
}  // namespace gradus::kernels
