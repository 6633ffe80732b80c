// How the steps of the ladder are launched: block sizes, grids and shared memory, and which tile a block
// gets.
#include <sys/mman.h>

#include <kernels/ladder/matmul/1_naive.cuh>
#include <kernels/ladder/matmul/2_coalesced.cuh>
#include <kernels/ladder/matmul/3_shared_tiles.cuh>
#include <kernels/ladder/matmul/4_thread_tiles.cuh>
#include <kernels/ladder/matmul/5_2d_register_tiles.cuh>
#include <kernels/ladder/matmul/6_vectorized.cuh>
#include <kernels/ladder/matmul/7_double_buffered_warp_tiles.cuh>
#include <kernels/ladder/matmul/8_tensor_cores.cuh>
#include <kernels/ladder/matmul/9_warpgroup.cuh>
#include <set>
#include <utility>

#include "kernels/kernel_testing.h"

namespace gradus::kernels::ladder {
namespace {

template <class Step>
int64_t groups(int64_t m, int64_t n, int64_t k = 3) {
  return Step{{nullptr, nullptr, nullptr, m, n, k}}.groups(Step::kBlockSize);
}
template <class Step>
size_t shared_bytes() {
  return Step{{nullptr, nullptr, nullptr, 5, 5, 5}}.shared_bytes(Step::kBlockSize);
}

TEST(MatmulLadderLaunch, BlockSizes) {
  EXPECT_EQ(SharedTiles<>::kBlockSize, 1024);
  EXPECT_EQ(ThreadTiles<>::kBlockSize, 512);
  EXPECT_EQ(RegisterTiles<>::kBlockSize, 256);
  EXPECT_EQ(Vectorized<>::kBlockSize, 256);
  EXPECT_EQ(WarpTiles<>::kBlockSize, 256);
  EXPECT_EQ(TensorCores<>::kBlockSize, 128);
  EXPECT_EQ(Warpgroups<>::kBlockSize, 256);
  for (int size = 0; size <= 1100; ++size) {
    EXPECT_EQ(Naive::supports(size), any_size(size));
    EXPECT_EQ(Coalesced::supports(size), any_size(size));
    EXPECT_EQ(SharedTiles<>::supports(size), size == 1024);
    EXPECT_EQ(ThreadTiles<>::supports(size), size == 512);
    EXPECT_EQ(RegisterTiles<>::supports(size), size == 256);
    EXPECT_EQ(Vectorized<>::supports(size), size == 256);
    EXPECT_EQ(WarpTiles<>::supports(size), size == 256);
    EXPECT_EQ(TensorCores<>::supports(size), size == 128);
    EXPECT_EQ(Warpgroups<>::supports(size), size == 256);
  }
}

constexpr int64_t kHuge = (int64_t{1} << 31) + 1;

TEST(MatmulLadderLaunch, AThreadForEachElement) {
  for (const int64_t n : {0, 1, 31, 33, 257}) {
    EXPECT_EQ(groups<Naive>(n, 1), (n + 255) / 256);
    EXPECT_EQ(groups<Coalesced>(1, n), (n + 255) / 256);
    EXPECT_EQ(groups<Coalesced>(n, 0), 0);
  }
  EXPECT_EQ(groups<Naive>(kHuge, 1), (1 << 23) + 1);
  EXPECT_EQ(groups<Coalesced>(1 << 16, (1 << 16) + 1), (1 << 24) + (1 << 8));
}

template <class Step>
void expect_tiles(int64_t rows, int64_t cols) {
  const auto up = [](int64_t n, int64_t by) { return (n + by - 1) / by; };
  for (const int64_t m : {int64_t{0}, int64_t{1}, int64_t{31}, int64_t{33}, rows - 1, rows, rows + 1, kHuge})
    for (const int64_t n : {int64_t{0}, int64_t{1}, int64_t{33}, cols - 1, cols, cols + 1})
      for (const int64_t k : {0, 1, 33})
        EXPECT_EQ(groups<Step>(m, n, k), up(m, rows) * up(n, cols)) << Step::kName << " " << m << " " << n;
}

TEST(MatmulLadderLaunch, ABlockForEachTile) {
  expect_tiles<SharedTiles<>>(32, 32);
  expect_tiles<ThreadTiles<>>(64, 64);
  expect_tiles<RegisterTiles<>>(128, 128);
  expect_tiles<Vectorized<>>(128, 128);
  expect_tiles<WarpTiles<>>(128, 128);
  expect_tiles<TensorCores<>>(128, 128);
  expect_tiles<Warpgroups<>>(128, 256);
  EXPECT_EQ(groups<WarpTiles<>>(1000, 1000), 64);
  EXPECT_EQ(groups<WarpTiles<>>(kHuge, kHuge), int64_t{(1 << 24) + 1} * ((1 << 24) + 1));
}

TEST(MatmulLadderLaunch, SharedMemory) {
  EXPECT_EQ(shared_bytes<Naive>(), 0u);
  EXPECT_EQ(shared_bytes<Coalesced>(), 0u);
  EXPECT_EQ(shared_bytes<SharedTiles<>>(), 2u * 32 * 32 * 4);
  EXPECT_EQ(shared_bytes<ThreadTiles<>>(), 2u * 64 * 8 * 4);
  EXPECT_EQ(shared_bytes<RegisterTiles<>>(), 2u * 128 * 8 * 4);
  EXPECT_EQ(shared_bytes<Vectorized<>>(), (132u + 128) * 8 * 4);
  EXPECT_EQ(shared_bytes<WarpTiles<>>(), 2u * (132 + 128) * 16 * 4);
  EXPECT_EQ(shared_bytes<TensorCores<>>(), 3u * (128 * 40 + 32 * 136) * 2);
  EXPECT_LE(shared_bytes<TensorCores<>>(), 99u * 1024)
      << "a block's limit on sm_86, the smallest from sm_80 on";
  EXPECT_EQ(shared_bytes<Warpgroups<>>(), 4u * (128 + 256) * 64 * 2 + 1024);
  EXPECT_LE(shared_bytes<Warpgroups<>>(), 227u * 1024) << "a block's limit on sm_90";
}

// Each tile is some block's, and no two blocks have the same one.
template <class TileOf>
void expect_all_tiles(const TileOf& tile_of, int64_t down, int64_t across) {
  std::set<std::pair<int64_t, int64_t>> seen;
  for (int64_t group = 0; group < down * across; ++group) {
    const Corner tile = tile_of(group);
    EXPECT_TRUE(tile.row % 16 == 0 && tile.row / 16 < down && tile.col % 32 == 0 && tile.col / 32 < across);
    seen.insert({tile.row, tile.col});
  }
  EXPECT_EQ(static_cast<int64_t>(seen.size()), down * across) << down << " x " << across;
}

TEST(MatmulLadderLaunch, EachTileIsComputedOnce) {
  for (const int64_t down : {1, 2, 7, 8, 9, 15, 17})
    for (const int64_t across : {1, 3, 8, 11}) {
      const Product<float> p{nullptr, nullptr, nullptr, down * 16 - 3, across * 32 - 5, 1};
      expect_all_tiles([&](int64_t group) { return tile_of<16, 32>(group, p); }, down, across);
      expect_all_tiles([&](int64_t group) { return banded_tile_of<16, 32, 8>(group, p); }, down, across);
    }
}

TEST(MatmulLadderLaunch, BandsAreNumberedColumnByColumn) {
  const Product<float> p{nullptr, nullptr, nullptr, 5 * 16, 3 * 32, 1};
  std::vector<std::pair<int64_t, int64_t>> got;
  for (int64_t group = 0; group < 15; ++group) {
    const Corner tile = banded_tile_of<16, 32, 4>(group, p);
    got.emplace_back(tile.row / 16, tile.col / 32);
  }
  EXPECT_EQ(got, (std::vector<std::pair<int64_t, int64_t>>{{0, 0},
                                                           {1, 0},
                                                           {2, 0},
                                                           {3, 0},
                                                           {0, 1},  //
                                                           {1, 1},
                                                           {2, 1},
                                                           {3, 1},
                                                           {0, 2},
                                                           {1, 2},
                                                           {2, 2},
                                                           {3, 2},
                                                           {4, 0},
                                                           {4, 1},
                                                           {4, 2}}));
}

TEST(MatmulLadderLaunch, TheLastTileOfTheLargestGrid) {
  const int64_t down = (int64_t{1} << 31) - 1;
  const Product<float> p{nullptr, nullptr, nullptr, down * 128, 1, 1};
  for (const Corner tile : {tile_of<128, 128>(down - 1, p), banded_tile_of<128, 128, 8>(down - 1, p)}) {
    EXPECT_EQ(tile.row, (down - 1) * 128);
    EXPECT_EQ(tile.col, 0);
  }
}

TEST(MatmulLadderLaunch, OperandsOfALaunch) {
  float a[6], c[8];
  BFloat16 b[12];
  ProductArgs args;
  args.a = {a, 1, {2, 3}, {3, 1}, DType::float32};
  args.b = {b, 2, {3, 4}, {4, 1}, DType::bfloat16};
  args.c = {c, 3, {2, 4}, {4, 1}, DType::float32};
  const auto p = Product<float>::of(args);
  EXPECT_TRUE(p.a == a && p.c == c && static_cast<const void*>(p.b) == b);
  EXPECT_EQ(p.m, 2);
  EXPECT_EQ(p.n, 4);
  EXPECT_EQ(p.k, 3);
}

// Zeros that take memory only where they are written.
template <class T>
class HugeZeros {
 public:
  explicit HugeZeros(int64_t n) : bytes_(static_cast<size_t>(n) * sizeof(T)) {
    memory_ =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    GRADUS_ASSERT(memory_ != MAP_FAILED);
  }
  ~HugeZeros() { munmap(memory_, bytes_); }
  HugeZeros(const HugeZeros&) = delete;
  HugeZeros& operator=(const HugeZeros&) = delete;
  T* data() { return static_cast<T*>(memory_); }

 private:
  size_t bytes_;
  void* memory_;
};

// The last block of a product, all else left out: the last row of A is 1 2 3 4, B's last column is 1 10 100
// 1000.
template <class Step, class T>
void check_last_block(int64_t m, int64_t n) {
  HugeZeros<T> a(m * 4), b(4 * n);
  HugeZeros<float> c(m * n);
  for (int64_t k = 0, power = 1; k < 4; ++k, power *= 10) {
    a.data()[(m - 1) * 4 + k] = static_cast<float>(k + 1);
    b.data()[k * n + n - 1] = static_cast<float>(power);
  }
  const Step step{{a.data(), b.data(), c.data(), m, n, 4}};
  constexpr int kThreads = Step::kBlockSize;
  const auto body = [&step](ThreadBlock& block) { step(block); };
  detail::run_block(Step::kName, body, kThreads, step.shared_bytes(kThreads), step.groups(kThreads) - 1);
  EXPECT_EQ(c.data()[m * n - 1], 4321) << Step::kName << " " << m << " " << n;
}

// A, B or C with more elements than 32 bits count.
template <class Step, class T = float>
void check_last_blocks() {
  check_last_block<Step, T>((int64_t{1} << 29) + 1, 1);
  check_last_block<Step, T>(1, (int64_t{1} << 29) + 1);
  check_last_block<Step, T>((1 << 16) + 1, (1 << 15) + 1);
}

TEST(MatmulLadderLaunch, MoreThan2To31Elements) {
  check_last_blocks<Naive>();
  check_last_blocks<Coalesced>();
  check_last_blocks<SharedTiles<4>>();
  check_last_blocks<ThreadTiles<8, 4, 4, 4>>();
  check_last_blocks<RegisterTiles<8, 8, 4, 4, 4>>();
  check_last_blocks<Vectorized<8, 8, 4, 4, 4>>();
  check_last_blocks<WarpTiles<64, 32, 8, 64, 32>>();
  check_last_blocks<TensorCores<16, 16, 16, 16, 16>, BFloat16>();
  check_last_blocks<Warpgroups<64, 64, 3>, BFloat16>();
}

}  // namespace
}  // namespace gradus::kernels::ladder
