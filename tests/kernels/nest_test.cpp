#include <gtest/gtest.h>

#include <kernels/blocks/nest.cuh>

namespace gradus::kernels {
namespace {

TEST(Nest, ADivisorDividesAsTheProcessorDoes) {
  const uint32_t edge = uint32_t{1} << 31;
  const uint32_t numbers[] = {1,   2,     3,     5,     6,       7,        31,       32,       33,
                              641, 65535, 65536, 65537, 1000003, edge / 2, edge - 3, edge - 2, edge - 1};
  for (const uint32_t d : numbers) {
    const Divisor divisor(d);
    EXPECT_EQ(divisor.value(), d);
    for (const uint32_t base : numbers)
      for (const uint32_t n : {base, base / d * d, base / d * d - (base >= d)})
        EXPECT_EQ(divisor.divide(n), n / d) << n << " / " << d;
  }
}

struct Operands {
  TensorArg y, x, row;
  Operands() {
    y.sizes = {3, 40, 5}, y.strides = {200, 5, 1};
    x.sizes = {3, 40, 5}, x.strides = {1, 15, 3};
    row.sizes = {5}, row.strides = {2};
  }
  elementwise::LoopNest<2> loop() const { return elementwise::make_loop<2>(y, {&x, &row}); }
  static void expect(const uint32_t* at, const int64_t* start, int64_t i) {
    EXPECT_EQ(at[0] + start[0], i);
    EXPECT_EQ(at[1] + start[1], i / 200 + i / 5 % 40 * 15 + i % 5 * 3);
    EXPECT_EQ(at[2] + start[2], i % 5 * 2);
  }
};

TEST(Nest, PlacesOfATransposedAndABroadcastOperand) {
  const Nest<3> nest(Operands().loop());
  ASSERT_EQ(nest.count, 600u);
  const int64_t start[3] = {};
  for (uint32_t i = 0; i < 600; i += 2) {
    uint32_t at[2][3];
    nest.locate({i, i + 1}, at);
    Operands::expect(at[0], start, i);
    Operands::expect(at[1], start, i + 1);
  }
}

TEST(Nest, PartsOfALoopThatIsTooLarge) {
  std::vector<int> seen(600);
  int parts = 0;
  for_each_part(Operands().loop(), 100, [&](const auto& loop, const int64_t* start) {
    ++parts;
    const Nest<3> nest(loop);
    EXPECT_LT(nest.count, 100u);
    for (uint32_t i = 0; i < nest.count; ++i) {
      uint32_t at[1][3];
      nest.locate({i}, at);
      for (const uint32_t offset : at[0]) EXPECT_LT(offset, 100u);
      Operands::expect(at[0], start, at[0][0] + start[0]);
      ++seen[at[0][0] + static_cast<size_t>(start[0])];
    }
  });
  EXPECT_GT(parts, 6);
  EXPECT_EQ(seen, std::vector<int>(600, 1));
}

}  // namespace
}  // namespace gradus::kernels
