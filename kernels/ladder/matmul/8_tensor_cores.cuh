// Step 8: tensor cores. bfloat16 times bfloat16, summed in float32.
//
// One instruction, mma.m16n8k16, multiplies a 16 x 16 by a 16 x 8 matrix that lie in the registers of a warp.
// It is so fast that feeding it is all that matters: 3 buffers, so that a tile has two tiles' time to arrive;
// 64 x 64 elements of C a warp; ldmatrix, which loads a whole matrix into the registers of a warp; and blocks
// numbered in bands, so that those that run together share their rows of A and columns of B in the L2 cache.
//
// What limits it: the warps. They compute addresses, wait for copies, and hold sums and operands in their
// registers. From sm_90a on, wgmma lets the tensor cores read shared memory themselves, and the TMA fetches.
#pragma once
#include <kernels/blocks/mma.cuh>
#include <kernels/ladder/matmul/async_tile.cuh>
#include <kernels/ladder/matmul/vec4.cuh>

namespace gradus::kernels::ladder {

/// A tile of C has kM x kN elements, kWarpM x kWarpN of them a warp (multiples of 16); K is walked in steps
/// of kK, a multiple of 16. Needs sm_80.
template <int kM = 128, int kN = 128, int kK = 32, int kWarpM = 64, int kWarpN = 64, int kStages = 3>
struct TensorCores {
  static constexpr const char* kName = "matmul step 8, tensor cores";
  static constexpr int kBlockSize = (kM / kWarpM) * (kN / kWarpN) * kWarpSize, kBlocksPerSm = 2;
  Product<BFloat16> p;

  static constexpr bool supports(int block_size) { return block_size == kBlockSize; }
  int64_t groups(int) const { return tiles<kM, kN>(p); }
  size_t shared_bytes(int) const {
    return shared_size<BFloat16>(kStages * kSizeA) + shared_size<BFloat16>(kStages * kSizeB);
  }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    const Buffers shared{block.template shared<BFloat16>(kStages * kSizeA),
                         block.template shared<BFloat16>(kStages * kSizeB)};
    const Corner tile = banded_tile_of<kM, kN, 8>(block.group_index(), p);
    const int warp = block.thread_rank() / kWarpSize;
    const int row = warp / (kN / kWarpN) * kWarpM, col = warp % (kN / kWarpN) * kWarpN;
    AsyncCopies<B> copies;
    Sums sum = {};
    for (int stage = 0; stage < kStages - 1; ++stage) fetch(block, copies, shared, tile, stage * kK, stage);
    int now = 0, next = kStages - 1;  // buffers: to compute from, to fetch into
    for (int64_t k = 0; k < p.k; k += kK) {
      copies.template wait<kStages - 2>();
      block.sync();  // the copies of all have arrived, and nobody reads the buffer `next` any more
      fetch(block, copies, shared, tile, k + (kStages - 1) * kK, next);
      multiply(block, shared.a + now * kSizeA + row * kStrideA, shared.b + now * kSizeB + col, sum);
      now = now + 1 == kStages ? 0 : now + 1;
      next = next + 1 == kStages ? 0 : next + 1;
    }
    store(p.result().window(tile.row, tile.col, kM, kN).from(row, col), block.thread_rank() % kWarpSize, sum);
  }

 private:
  // 16 bytes more a row: the 8 rows of a matrix that ldmatrix loads then lie in different banks.
  static constexpr int kStrideA = kK + 8, kStrideB = kN + 8;
  static constexpr int kSizeA = kM * kStrideA, kSizeB = kK * kStrideB;
  static constexpr int kRows = kWarpM / 16, kCols = kWarpN / 8;  // matrices of C that a warp holds
  static_assert(kWarpM % 16 == 0 && kWarpN % 16 == 0 && kK % 16 == 0 && kStages >= 2);
  using Sums = FragmentC[kRows][kCols];
  struct Buffers {
    BFloat16 *a, *b;
  };

  template <class B>
  GRADUS_HD void fetch(B& block, AsyncCopies<B>& copies, Buffers shared, Corner tile, int64_t k,
                       int stage) const {
    if (k < p.k) {
      fetch_tile<kM, kK, kStrideA, kBlockSize>(block, copies, shared.a + stage * kSizeA,
                                               p.left().window(tile.row, k, kM, kK), p.left().has_vectors());
      fetch_tile<kK, kN, kStrideB, kBlockSize>(block, copies, shared.b + stage * kSizeB,
                                               p.right().window(k, tile.col, kK, kN),
                                               p.right().has_vectors());
    }
    copies.commit();  // beyond the end an empty group, so that wait() counts the same
  }

  template <class B>
  GRADUS_HD static void multiply(B& block, const BFloat16* a, const BFloat16* b, Sums& sum) {
    GRADUS_UNROLL
    for (int l = 0; l < kK; l += 16) {
      FragmentA x[kRows];
      FragmentB y[kCols];
      GRADUS_UNROLL
      for (int i = 0; i < kRows; ++i) load_a(block, x[i], a + i * 16 * kStrideA + l, kStrideA);
      GRADUS_UNROLL
      for (int j = 0; j < kCols; j += 2) load_b(block, y[j], y[j + 1], b + l * kStrideB + j * 8, kStrideB);
      GRADUS_UNROLL
      for (int i = 0; i < kRows; ++i) {
        GRADUS_UNROLL
        for (int j = 0; j < kCols; ++j) mma(block, sum[i][j], x[i], y[j]);
      }
    }
  }

  GRADUS_HD void store(const Window<float>& c, int lane, const Sums& sum) const {
    const Place first = place_c(lane, 0);
    const Window mine = c.from(first.row, first.col);
    const bool pairs = p.n % 2 == 0 && reinterpret_cast<uintptr_t>(p.c) % 8 == 0;
    GRADUS_UNROLL
    for (int i = 0; i < kRows; ++i) {
      GRADUS_UNROLL
      for (int j = 0; j < kCols; ++j) {
        store2(mine, i * 16, j * 8, pairs, {{sum[i][j].v[0], sum[i][j].v[1]}});
        store2(mine, i * 16 + 8, j * 8, pairs, {{sum[i][j].v[2], sum[i][j].v[3]}});
      }
    }
  }
};

}  // namespace gradus::kernels::ladder

GRADUS_KERNEL(gradus::kernels::ladder::TensorCores<>);
