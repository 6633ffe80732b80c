#include <kernels/blocks/mma.cuh>
#include <set>
#include <utility>

#include "kernels/kernel_testing.h"

namespace gradus::kernels {
namespace {

template <class F>
struct OneWarp {
  static constexpr const char* kName = "one warp";
  F f;
  static constexpr bool supports(int block_size) { return block_size == kWarpSize; }
  int64_t groups(int) const { return 1; }
  size_t shared_bytes(int) const { return 0; }
  template <Block B>
  void operator()(B& block) const {
    f(block);
  }
};
template <class F>
void run_warp(F f) {
  run_threads(OneWarp<F>{f}, kWarpSize);
}

template <class F>
size_t places(F place, int elements, int rows, int cols) {
  std::set<std::pair<int, int>> seen;
  for (int lane = 0; lane < kWarpSize; ++lane)
    for (int e = 0; e < elements; ++e) {
      const Place p = place(lane, e);
      if (p.row < rows && p.col < cols) seen.insert({p.row, p.col});
    }
  return seen.size();
}

TEST(Mma, FragmentsCoverTheirMatrices) {
  EXPECT_EQ(places(place_a, 8, 16, 16), 256u);
  EXPECT_EQ(places(place_b, 4, 16, 8), 128u);
  EXPECT_EQ(places(place_c, 4, 16, 8), 128u);
}

// Figures of the PTX manual, section mma.m16n8k16: the elements of thread 6, that is group 1, thread 2 in it.
TEST(Mma, PlacesAreThoseOfThePtxManual) {
  const Place a[] = {{1, 4}, {1, 5}, {9, 4}, {9, 5}, {1, 12}, {1, 13}, {9, 12}, {9, 13}};
  for (int e = 0; e < 8; ++e) {
    EXPECT_EQ(place_a(6, e).row, a[e].row) << e;
    EXPECT_EQ(place_a(6, e).col, a[e].col) << e;
  }
  const Place b[] = {{4, 1}, {5, 1}, {12, 1}, {13, 1}}, c[] = {{1, 4}, {1, 5}, {9, 4}, {9, 5}};
  for (int e = 0; e < 4; ++e) {
    EXPECT_EQ(place_b(6, e).row, b[e].row) << e;
    EXPECT_EQ(place_b(6, e).col, b[e].col) << e;
    EXPECT_EQ(place_c(6, e).row, c[e].row) << e;
    EXPECT_EQ(place_c(6, e).col, c[e].col) << e;
  }
}

TEST(Mma, LoadsPutEachElementInItsPlace) {
  constexpr int kStride = 24;
  std::vector<BFloat16> tile(16 * kStride);
  for (size_t i = 0; i < tile.size(); ++i) tile[i].bits = static_cast<uint16_t>(i);
  run_warp([&](auto& block) {
    const int lane = block.thread_rank();
    FragmentA a;
    FragmentB left, right;
    load_a(block, a, tile.data(), kStride);
    load_b(block, left, right, tile.data(), kStride);
    const auto bits = [](const uint32_t* word, int e) {
      return static_cast<int>(word[e / 2] >> e % 2 * 16 & 0xffff);
    };
    for (int e = 0; e < 8; ++e)
      EXPECT_EQ(bits(a.word, e), place_a(lane, e).row * kStride + place_a(lane, e).col);
    for (int e = 0; e < 4; ++e) {
      const int at = place_b(lane, e).row * kStride + place_b(lane, e).col;
      EXPECT_EQ(bits(left.word, e), at);
      EXPECT_EQ(bits(right.word, e), at + 8);
    }
  });
}

TEST(Mma, AddsTheProductOfTheMatrices) {
  const auto x = random_vector<BFloat16>(16 * 16, 1), y = random_vector<BFloat16>(16 * 16, 2);
  const auto before = random_vector<float>(16 * 16, 3);
  std::vector<float> got(16 * 16);
  run_warp([&](auto& block) {
    FragmentA a;
    FragmentB b[2];
    load_a(block, a, x.data(), 16);
    load_b(block, b[0], b[1], y.data(), 16);
    for (int half = 0; half < 2; ++half) {
      const auto at = [&](int e) {
        const Place p = place_c(block.thread_rank(), e);
        return static_cast<size_t>(p.row * 16 + half * 8 + p.col);
      };
      FragmentC c;
      for (int e = 0; e < 4; ++e) c.v[e] = before[at(e)];
      mma(block, c, a, b[half]);
      for (int e = 0; e < 4; ++e) got[at(e)] = c.v[e];
    }
  });
  for (size_t i = 0; i < 16; ++i)
    for (size_t j = 0; j < 16; ++j) {
      double want = before[i * 16 + j], size = std::fabs(want);
      for (size_t k = 0; k < 16; ++k) {
        const double product = static_cast<double>(x[i * 16 + k]) * static_cast<double>(y[k * 16 + j]);
        want += product;
        size += std::fabs(product);
      }
      EXPECT_LE(std::fabs(static_cast<double>(got[i * 16 + j]) - want), 17 * 0x1p-24 * size);
    }
}

TEST(Mma, EveryLaneOfTheWarpMustTakePart) {
  try {
    run_warp([](auto& block) {
      FragmentC c{};
      if (block.thread_rank() != 5) mma(block, c, FragmentA{}, FragmentB{});
    });
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "E-DIVERGENCE");
  }
}

}  // namespace
}  // namespace gradus::kernels
