// Every step of the ladder against a reference in double, and the float32 steps against each other to the
// bit.
#include <kernels/ladder/matmul/1_naive.cuh>
#include <kernels/ladder/matmul/2_coalesced.cuh>
#include <kernels/ladder/matmul/3_shared_tiles.cuh>
#include <kernels/ladder/matmul/4_thread_tiles.cuh>
#include <kernels/ladder/matmul/5_2d_register_tiles.cuh>
#include <kernels/ladder/matmul/6_vectorized.cuh>
#include <kernels/ladder/matmul/7_double_buffered_warp_tiles.cuh>
#include <kernels/ladder/matmul/8_tensor_cores.cuh>
#include <kernels/ladder/matmul/9_warpgroup.cuh>
#include <limits>

#include "kernels/kernel_testing.h"

namespace gradus::kernels::ladder {
namespace {

struct Size {
  int64_t m, n, k;
};
std::ostream& operator<<(std::ostream& out, Size s) {
  return out << "M " << s.m << ", N " << s.n << ", K " << s.k;
}

template <class T>
struct Operands {
  Size size;
  std::vector<T> a = random_vector<T>(size.m * size.k, 1), b = random_vector<T>(size.k * size.n, 2);
};

template <class Step>
using ElementOf = std::remove_const_t<std::remove_pointer_t<decltype(std::declval<Step>().p.a)>>;

// C, which begins as NaN. Block size 0: SerialBlock.
template <class Step, class T>
std::vector<float> product(const Operands<T>& x, int block_size = Step::kBlockSize) {
  const Size s = x.size;
  std::vector<float> c(static_cast<size_t>(s.m * s.n), std::numeric_limits<float>::quiet_NaN());
  const Step step{{x.a.data(), x.b.data(), c.data(), s.m, s.n, s.k}};
  if constexpr (Step::supports(1))  // the others know no SerialBlock
    Runner{block_size}(step);
  else
    run_threads(step, block_size);
  return c;
}

// A sum of K products, each step rounded once, is off by at most K u times the sum of their sizes (and a
// little, for the rounding of the bound). bfloat16 products are exact in float32, so the bound is that of the
// sum.
template <class T>
void expect_product(const std::vector<float>& got, const Operands<T>& x) {
  const Size s = x.size;
  for (int64_t i = 0; i < s.m; ++i)
    for (int64_t j = 0; j < s.n; ++j) {
      double want = 0, size = 0;
      for (int64_t k = 0; k < s.k; ++k) {
        const double term = static_cast<double>(x.a[static_cast<size_t>(i * s.k + k)]) *
                            static_cast<double>(x.b[static_cast<size_t>(k * s.n + j)]);
        want += term;
        size += std::fabs(term);
      }
      const double value = got[static_cast<size_t>(i * s.n + j)];
      if (value == want || (std::isnan(value) && std::isnan(want))) continue;
      ASSERT_LE(std::fabs(value - want), 1.001 * static_cast<double>(s.k) * 0x1p-24 * size)
          << "c[" << i << ", " << j << "] is " << value << ", want " << want;
    }
}

template <class Step>
void check(const Operands<ElementOf<Step>>& x, int block_size = Step::kBlockSize) {
  SCOPED_TRACE(::testing::Message() << Step::kName << ", block of " << block_size << ", " << x.size);
  const auto got = product<Step>(x, block_size);
  expect_product(got, x);
  if constexpr (std::is_same_v<ElementOf<Step>, float>) {
    const auto naive = product<Naive>(x, 0);
    for (size_t e = 0; e < got.size(); ++e)
      ASSERT_TRUE(got[e] == naive[e] || (std::isnan(got[e]) && std::isnan(naive[e]))) << "element " << e;
  }
}
template <class Step>
void check(std::initializer_list<Size> sizes) {
  for (const Size size : sizes) {
    check<Step>(Operands<ElementOf<Step>>{size});
    if (::testing::Test::HasFatalFailure()) return;
  }
}

// Small tiles, with which few threads meet every kind of edge in each dimension.
template <class Step>
class MatmulLadderTile : public ::testing::Test {};
using SmallTiles =
    ::testing::Types<SharedTiles<1>, SharedTiles<4>, ThreadTiles<4, 1, 4, 4>, ThreadTiles<8, 4, 4, 4>,
                     RegisterTiles<4, 4, 4, 4, 4>, RegisterTiles<8, 16, 4, 4, 8>, Vectorized<4, 4, 4, 4, 4>,
                     Vectorized<8, 16, 4, 4, 8>>;
TYPED_TEST_SUITE(MatmulLadderTile, SmallTiles);

TYPED_TEST(MatmulLadderTile, EveryEdge) {
  const int64_t sizes[] = {1, 4, 7, 17};
  for (const int64_t m : sizes)
    for (const int64_t n : sizes)
      for (const int64_t k : {0, 1, 4, 7, 16}) {
        const Operands<float> x{{m, n, k}};
        check<TypeParam>(x, TypeParam::kBlockSize == 1 ? 0 : TypeParam::kBlockSize);  // 1: SerialBlock
        if (this->HasFatalFailure()) return;
      }
}

TEST(MatmulLadder, NaiveAndCoalescedOnEveryBlock) {
  for (const Size size : {Size{1, 1, 1}, {31, 33, 65}, {33, 1, 31}, {1, 65, 33}, {5, 3, 0}})
    for (const int block_size : kBlockSizes) {
      check<Naive>(Operands<float>{size}, block_size);
      check<Coalesced>(Operands<float>{size}, block_size);
    }
}

// The tiles that a GPU runs with, at sizes around them and at odd ones.
TEST(MatmulLadder, SharedTiles) { check<SharedTiles<>>({{31, 33, 65}, {33, 31, 1}, {32, 32, 0}}); }

TEST(MatmulLadder, ThreadTiles) {
  check<ThreadTiles<>>({{65, 63, 7}, {63, 65, 9}, {1, 31, 33}, {64, 64, 0}, {33, 1, 65}});
}

TEST(MatmulLadder, RegisterTiles) {
  check<RegisterTiles<>>({{129, 127, 7}, {127, 129, 9}, {1, 31, 33}, {65, 33, 0}, {33, 1, 65}});
}

TEST(MatmulLadder, Vectorized) {
  check<Vectorized<>>({{129, 127, 7}, {127, 129, 9}, {132, 132, 12}, {31, 33, 65}, {65, 1, 31}, {1, 65, 0}});
}

TEST(MatmulLadder, WarpTiles) {
  check<WarpTiles<>>(
      {{128, 128, 48}, {129, 132, 47}, {127, 129, 17}, {1, 31, 33}, {31, 33, 1}, {33, 65, 15}, {65, 1, 0}});
}

TEST(MatmulLadder, TensorCores) {
  check<TensorCores<>>({{128, 128, 160}, {127, 129, 33}, {31, 33, 65}, {65, 1, 31}, {33, 31, 0}});
}

TEST(MatmulLadder, Warpgroups) {
  check<Warpgroups<>>({{128, 256, 448}, {127, 257, 65}, {31, 33, 65}, {33, 31, 0}});
}

// One warp, so that more sizes can be afforded: whole tiles (asynchronous copies), edges in each dimension,
// rows that begin at 16 bytes and ones that do not.
TEST(MatmulLadder, WarpTilesOfOneWarp) {
  using Step = WarpTiles<64, 32, 8, 64, 32>;
  for (const int64_t m : {1, 64, 65})
    for (const int64_t n : {31, 32, 36, 65})
      for (const int64_t k : {1, 8, 15, 40}) check<Step>({{m, n, k}});
}

TEST(MatmulLadder, TensorCoresOfOneWarp) {
  using Step = TensorCores<16, 16, 16, 16, 16>;
  for (const int64_t m : {1, 16, 33})
    for (const int64_t n : {15, 16, 24, 33})
      for (const int64_t k : {1, 16, 17, 88}) check<Step>({{m, n, k}});
}

// One warpgroup: with three buffers and with four, from no tile of K to more than there are buffers.
TEST(MatmulLadder, WarpgroupsOfOneWarpgroup) {
  for (const int64_t m : {1, 64, 65})
    for (const int64_t n : {63, 64, 72, 129})
      for (const int64_t k : {1, 64, 65, 320}) check<Warpgroups<64, 64, 3>>({{m, n, k}});
  for (const int64_t k : {0, 64, 128, 192, 256, 320}) check<Warpgroups<64, 128, 4>>({{64, 128, k}});
}

template <class Step>
void check_nan_and_inf(int64_t m, int64_t n, int64_t k) {
  Operands<ElementOf<Step>> x{{m, n, k}};
  const auto inf = std::numeric_limits<float>::infinity();
  x.a[static_cast<size_t>((m - 1) * k + k - 1)] = std::numeric_limits<float>::quiet_NaN();  // the last row
  x.a[static_cast<size_t>(k)] = inf;                                                        // row 1
  x.b[static_cast<size_t>(n - 1)] = -inf;  // the last column; row 1 of it: inf * -inf
  x.b[0] = 0;                              // column 0; row 1 of it: inf * 0
  const auto got = product<Step>(x);
  EXPECT_TRUE(std::isnan(got[static_cast<size_t>(n)]));
  EXPECT_TRUE(std::isnan(got.back()));
  EXPECT_EQ(got[static_cast<size_t>(2 * n - 1)], -inf);
  EXPECT_TRUE(std::isfinite(got[0]));
  check<Step>(x);
}

TEST(MatmulLadder, NaNAndInfinityStayInTheirRowsAndColumns) {
  check_nan_and_inf<Naive>(5, 7, 3);
  check_nan_and_inf<Coalesced>(5, 7, 3);
  check_nan_and_inf<SharedTiles<4>>(5, 7, 3);
  check_nan_and_inf<ThreadTiles<8, 4, 4, 4>>(5, 7, 3);
  check_nan_and_inf<RegisterTiles<8, 16, 4, 4, 8>>(9, 17, 7);
  check_nan_and_inf<Vectorized<8, 16, 4, 4, 8>>(9, 20, 8);
  check_nan_and_inf<WarpTiles<64, 32, 8, 64, 32>>(65, 36, 15);
  check_nan_and_inf<TensorCores<16, 16, 16, 16, 16>>(17, 24, 40);
  check_nan_and_inf<Warpgroups<64, 64, 3>>(65, 72, 72);
}

// 16-byte accesses need more than a width that is a multiple of 16 bytes.
TEST(MatmulLadder, MatricesMayBeginAnywhere) {
  const Operands<float> x{{64, 32, 16}};
  const Operands<BFloat16> y{{16, 16, 32}};
  const auto shifted = [](const auto& v) {
    auto copy = v;
    copy.insert(copy.begin(), v[0]);
    return copy;
  };
  const auto a = shifted(x.a), b = shifted(x.b);
  std::vector<float> c(64 * 32 + 1);
  const Product<float> p{a.data() + 1, b.data() + 1, c.data() + 1, 64, 32, 16};
  run_threads(WarpTiles<64, 32, 8, 64, 32>{p}, 32);
  expect_product({c.begin() + 1, c.end()}, x);
  run_threads(Vectorized<8, 16, 4, 4, 8>{p}, 4);
  expect_product({c.begin() + 1, c.end()}, x);
  const auto ya = shifted(y.a), yb = shifted(y.b);
  c.assign(16 * 16 + 1, 0);
  run_threads(TensorCores<16, 16, 16, 16, 16>{{ya.data() + 1, yb.data() + 1, c.data() + 1, 16, 16, 32}}, 32);
  expect_product({c.begin() + 1, c.end()}, y);
  const Operands<BFloat16> z{{64, 64, 64}};
  const auto za = shifted(z.a), zb = shifted(z.b);
  c.assign(64 * 64 + 1, 0);
  run_threads(Warpgroups<64, 64, 3>{{za.data() + 1, zb.data() + 1, c.data() + 1, 64, 64, 64}}, 128);
  expect_product({c.begin() + 1, c.end()}, z);
}

}  // namespace
}  // namespace gradus::kernels::ladder
