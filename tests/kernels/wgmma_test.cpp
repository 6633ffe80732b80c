#include <kernels/blocks/wgmma.cuh>
#include <set>
#include <utility>

#include "kernels/kernel_testing.h"

namespace gradus::kernels {
namespace {

TEST(Wgmma, ASlabIsARearrangedMatrix) {
  std::set<int> seen;
  for (int row = 0; row < 16; ++row)
    for (int col = 0; col < kSlabCols; ++col) seen.insert(in_slab(row, col));
  EXPECT_EQ(seen.size(), 16u * kSlabCols);
  EXPECT_EQ(*seen.begin(), 0);
  EXPECT_EQ(*seen.rbegin(), 16 * kSlabCols - 1);
}

// The PTX manual's Swizzle<3, 4, 3>: bits 4 to 6 of a byte's address become their exclusive or with bits 7
// to 9.
TEST(Wgmma, SlabsAreSwizzledAsThePtxManualSays) {
  for (int row = 0; row < 64; ++row)
    for (int col = 0; col < kSlabCols; ++col) {
      const int plain = (row * kSlabCols + col) * 2;
      EXPECT_EQ(in_slab(row, col) * 2, plain ^ (plain >> 7 & 7) << 4) << row << ", " << col;
    }
}

// 8 rows of a column of 16-byte words, and the 8 words of a row, lie in 32 different banks of 4 bytes.
TEST(Wgmma, RowsAndColumnsOfASlabMeetEveryBank) {
  for (int i = 0; i < 8; ++i) {
    std::set<int> row, column;
    for (int j = 0; j < 8; ++j) {
      row.insert(in_slab(i, 8 * j) / 8 % 8);
      column.insert(in_slab(j, 8 * i) / 8 % 8);
    }
    EXPECT_EQ(row.size(), 8u);
    EXPECT_EQ(column.size(), 8u);
  }
}

TEST(Wgmma, SlabsBeginAtMultiplesOf1024Bytes) {
  alignas(kSlabAlignment) BFloat16 memory[3 * kSlabAlignment / 2];
  EXPECT_EQ(first_slab(memory), memory);
  EXPECT_EQ(first_slab(memory + 8), memory + 512);
  EXPECT_EQ(first_slab(memory + 504), memory + 512);
  EXPECT_EQ(first_slab(memory + 512), memory + 512);
}

// The PTX manual, "Matrix Descriptor Format": address in bits 0 to 13, leading offset in 16 to 29, stride in
// 32 to 45, each without its lowest 4 bits; 128-byte swizzle is 1 in bits 62 and 63.
TEST(Wgmma, DescriptorsAreThoseOfThePtxManual) {
  EXPECT_EQ(slab_descriptor(0, 0, 0), uint64_t{0x4000000000000000});
  EXPECT_EQ(slab_descriptor(0x400, 0, 0), uint64_t{0x4000000000000040});
  EXPECT_EQ(slab_descriptor(0x420, 1024, 0), uint64_t{0x4000004000000042});
  EXPECT_EQ(slab_descriptor(0, 1024, 8192), uint64_t{0x4000004002000000});
  EXPECT_EQ(slab_descriptor(0x38c00, 1024, 8192), uint64_t{0x40000040020038c0});
  EXPECT_EQ(slab_descriptor(0x1038c00, 0, 0), uint64_t{0x40000000000038c0}) << "18 bits of an address";
}

// The figure "register fragment layout for accumulator matrix D" of the PTX manual: thread 0 has (0, 0), (0,
// 1), (8, 0), (8, 1), (0, 8), …; thread 38 is lane 6 of warp 1, group 1, thread 2 in it.
TEST(Wgmma, SumsLieWhereThePtxManualSays) {
  const int first[][2] = {{0, 0}, {0, 1}, {8, 0}, {8, 1}, {0, 8}, {0, 9}, {8, 8}, {8, 9}};
  const int other[][2] = {{17, 4}, {17, 5}, {25, 4}, {25, 5}, {17, 12}, {17, 13}, {25, 12}, {25, 13}};
  for (int e = 0; e < 8; ++e) {
    EXPECT_EQ(place_of_sum(0, e).row, first[e][0]);
    EXPECT_EQ(place_of_sum(0, e).col, first[e][1]);
    EXPECT_EQ(place_of_sum(38, e).row, other[e][0]);
    EXPECT_EQ(place_of_sum(38, e).col, other[e][1]);
  }
  std::set<std::pair<int, int>> seen;
  for (int thread = 0; thread < kWarpgroupSize; ++thread)
    for (int e = 0; e < 128; ++e) {
      const SumPlace at = place_of_sum(thread, e);
      EXPECT_TRUE(at.row < 64 && at.col < 256);
      seen.insert({at.row, at.col});
    }
  EXPECT_EQ(seen.size(), 64u * 256);
}

template <class F>
struct OneWarpgroup {
  static constexpr const char* kName = "one warpgroup";
  F f;
  static constexpr bool supports(int block_size) { return block_size == kWarpgroupSize; }
  int64_t groups(int) const { return 1; }
  size_t shared_bytes(int) const { return 0; }
  template <Block B>
  void operator()(B& block) const {
    f(block);
  }
};

constexpr int kCols = 128;
constexpr int kEightRows = 1024, kNextSlab = 16 * 128;  // bytes

// A (64 x 16) in the second quarter of a slab's columns and B (16 x 128) in two slabs, as numbers in their
// places.
struct Matrices {
  std::vector<BFloat16> a = random_vector<BFloat16>(64 * 16, 1), b = random_vector<BFloat16>(16 * kCols, 2);
  std::vector<BFloat16> memory = std::vector<BFloat16>(64 * 64 + 2 * 16 * 64 + kSlabAlignment / 2, NAN);
  BFloat16 *slab_a = first_slab(memory.data()), *slab_b = slab_a + 64 * 64;
  Matrices() {
    for (int i = 0; i < 64; ++i)
      for (int k = 0; k < 16; ++k) slab_a[in_slab(i, 16 + k)] = a[static_cast<size_t>(i * 16 + k)];
    for (int k = 0; k < 16; ++k)
      for (int j = 0; j < kCols; ++j)
        slab_b[j / 64 * 16 * 64 + in_slab(k, j % 64)] = b[static_cast<size_t>(k * kCols + j)];
  }
  SlabMatrix left() const { return {slab_a + 16, kEightRows, 0}; }
  SlabMatrix right() const { return {slab_b, kEightRows, kNextSlab}; }
};

// The 64 x 128 sums that `f(block, products, sum)` leaves.
template <class F>
std::vector<float> sums(float before, F f) {
  std::vector<float> all(64 * kCols);
  const auto body = [&](auto& block) {
    WarpgroupProducts<std::decay_t<decltype(block)>> products;
    float sum[kCols / 2];
    for (float& s : sum) s = before;
    f(block, products, sum);
    for (int e = 0; e < kCols / 2; ++e) {
      const SumPlace at = place_of_sum(block.thread_rank(), e);
      all[static_cast<size_t>(at.row * kCols + at.col)] = sum[e];
    }
  };
  run_threads(OneWarpgroup<decltype(body)>{body}, kWarpgroupSize);
  return all;
}

TEST(Wgmma, AddsTheProductOfTheMatrices) {
  const Matrices m;
  const auto got = sums(0.5f, [&](auto& block, auto& products, auto& sum) {
    products.begin();
    products.multiply(block, sum, m.left(), m.right());
    products.commit();
    products.template wait<0>(sum);
  });
  for (size_t i = 0; i < 64; ++i)
    for (size_t j = 0; j < kCols; ++j) {
      double want = 0.5, size = 0.5;
      for (size_t k = 0; k < 16; ++k) {
        const double product = static_cast<double>(m.a[i * 16 + k]) * static_cast<double>(m.b[k * kCols + j]);
        want += product;
        size += std::fabs(product);
      }
      ASSERT_LE(std::fabs(static_cast<double>(got[i * kCols + j]) - want), 17 * 0x1p-24 * size)
          << i << ", " << j;
    }
}

TEST(Wgmma, WaitLeavesTheLastGroupsToCome) {
  const Matrices m;
  const auto product = sums(0, [&](auto& block, auto& products, auto& sum) {
    products.multiply(block, sum, m.left(), m.right());
    products.commit();
    products.template wait<0>(sum);
  });
  const auto one_of_two = sums(0, [&](auto& block, auto& products, auto& sum) {
    for (int i = 0; i < 2; ++i) {
      products.multiply(block, sum, m.left(), m.right());
      products.commit();
    }
    products.template wait<1>(sum);
  });
  EXPECT_EQ(one_of_two, product);
}

TEST(Wgmma, WhatIsOverwrittenTooEarlyIsNaN) {
  Matrices m;
  const auto got = sums(0, [&](auto& block, auto& products, auto& sum) {
    products.multiply(block, sum, m.left(), m.right());
    products.commit();
    block.sync();
    if (block.thread_rank() == 0) m.slab_a[in_slab(3, 17)] = 100.f;  // row 3
    block.sync();
    products.template wait<0>(sum);
  });
  EXPECT_TRUE(std::isnan(got[3 * kCols]));
  EXPECT_TRUE(std::isfinite(got[4 * kCols]));
}

TEST(Wgmma, EveryLaneOfTheWarpgroupMustTakePart) {
  const Matrices m;
  try {
    sums(0, [&](auto& block, auto& products, auto& sum) {
      if (block.thread_rank() != 101) products.multiply(block, sum, m.left(), m.right());
    });
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "E-DIVERGENCE");
  }
}

}  // namespace
}  // namespace gradus::kernels
