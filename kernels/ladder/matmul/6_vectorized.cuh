// Step 6: step 5 with loads and stores of 16 bytes.
//
// For that, a thread's numbers must be neighbours. Those of B are: they lie along a row. Those of A lie along
// a column, so A's tile is transposed on its way into shared memory.
//
// What limits it: waiting. Nobody computes while a tile is fetched, and a wave of loads meets two sync()s.
// Also the 16-byte words that a warp's threads read of B lie 32 bytes apart, so they share banks two by two.
// Step 7 fetches the next tile meanwhile, and arranges the threads of a warp so that no bank is asked twice.
#pragma once
#include <kernels/ladder/matmul/vec4.cuh>

namespace gradus::kernels::ladder {

/// A tile of C has kM x kN elements, kRows x kCols of them a thread, all multiples of 4; K is walked in steps
/// of kK. 16-byte accesses where the rows of the matrix begin at a multiple of 16 bytes, 4-byte ones
/// elsewhere.
template <int kM = 128, int kN = 128, int kK = 8, int kRows = 8, int kCols = 8>
struct Vectorized {
  static constexpr const char* kName = "matmul step 6, vectorized";
  static constexpr int kBlockSize = (kM / kRows) * (kN / kCols), kBlocksPerSm = 2;
  Product<float> p;

  static constexpr bool supports(int block_size) { return block_size == kBlockSize; }
  int64_t groups(int) const { return tiles<kM, kN>(p); }
  size_t shared_bytes(int) const { return shared_size<float>(kK * kStride) + shared_size<float>(kK * kN); }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    float* a = block.template shared<float>(kK * kStride);
    float* b = block.template shared<float>(kK * kN);
    const Corner tile = tile_of<kM, kN>(block.group_index(), p);
    const int row = block.thread_rank() / (kN / kCols) * kRows,
              col = block.thread_rank() % (kN / kCols) * kCols;
    float sum[kRows][kCols] = {};
    for (int64_t k = 0; k < p.k; k += kK) {
      fill_left(block, a, p.left().window(tile.row, k, kM, kK));
      fill_right(block, b, p.right().window(k, tile.col, kK, kN));
      block.sync();
      multiply(a + row, b + col, sum);
      block.sync();
    }
    store(p.result().window(tile.row, tile.col, kM, kN).from(row, col), sum);
  }

 private:
  static constexpr int kStride = kM + 4;  // of the transposed tile: spreads a column over the banks

  template <class B>
  GRADUS_HD void fill_left(B& block, float* a, const Window<const float>& from) const {
    const bool vectors = p.left().has_vectors();
    for (int e = block.thread_rank(); e < kM * kK / 4; e += kBlockSize) {
      const int i = e / (kK / 4), l = e % (kK / 4) * 4;
      const Vec4 x = load4(from, i, l, vectors);
      GRADUS_UNROLL
      for (int d = 0; d < 4; ++d) a[(l + d) * kStride + i] = x.v[d];
    }
  }

  template <class B>
  GRADUS_HD void fill_right(B& block, float* b, const Window<const float>& from) const {
    const bool vectors = p.right().has_vectors();
    for (int e = block.thread_rank(); e < kK * kN / 4; e += kBlockSize) {
      const int l = e / (kN / 4), j = e % (kN / 4) * 4;
      store4(b + l * kN + j, load4(from, l, j, vectors));
    }
  }

  GRADUS_HD static void multiply(const float* a, const float* b, float (&sum)[kRows][kCols]) {
    GRADUS_UNROLL
    for (int l = 0; l < kK; ++l) {
      Vec4 x[kRows / 4], y[kCols / 4];
      GRADUS_UNROLL
      for (int i = 0; i < kRows; i += 4) x[i / 4] = load4(a + l * kStride + i);
      GRADUS_UNROLL
      for (int j = 0; j < kCols; j += 4) y[j / 4] = load4(b + l * kN + j);
      add_outer_product<kRows, kCols>(x, y, sum);
    }
  }

  GRADUS_HD void store(const Window<float>& c, const float (&sum)[kRows][kCols]) const {
    const bool vectors = p.result().has_vectors();
    GRADUS_UNROLL
    for (int i = 0; i < kRows; ++i) {
      GRADUS_UNROLL
      for (int j = 0; j < kCols; j += 4) store4(c, i, j, vectors, four_of(sum, i, j));
    }
  }
};

}  // namespace gradus::kernels::ladder

GRADUS_KERNEL(gradus::kernels::ladder::Vectorized<>);
