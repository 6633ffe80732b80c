// Step 5: a thread computes a small tile of C, kRows x kCols, in registers.
//
// For each k it reads kRows numbers of A and kCols of B and multiplies each with each: the outer product.
// With 8 and 8, that is 16 reads for 64 multiplications.
//
// What limits it: the number of load instructions, each of which moves 4 bytes, from global memory and from
// shared memory. Step 6 moves 16 bytes with each.
#pragma once
#include <kernels/ladder/matmul/product.cuh>

namespace gradus::kernels::ladder {

/// A tile of C has kM x kN elements, kRows x kCols of them a thread; K is walked in steps of kK.
template <int kM = 128, int kN = 128, int kK = 8, int kRows = 8, int kCols = 8>
struct RegisterTiles {
  static constexpr const char* kName = "matmul step 5, register tiles";
  static constexpr int kBlockSize = (kM / kRows) * (kN / kCols), kBlocksPerSm = 2;
  Product<float> p;

  static constexpr bool supports(int block_size) { return block_size == kBlockSize; }
  int64_t groups(int) const { return tiles<kM, kN>(p); }
  size_t shared_bytes(int) const { return shared_size<float>(kM * kK) + shared_size<float>(kK * kN); }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    float* a = block.template shared<float>(kM * kK);
    float* b = block.template shared<float>(kK * kN);
    const Corner tile = tile_of<kM, kN>(block.group_index(), p);
    const int row = block.thread_rank() / (kN / kCols) * kRows,
              col = block.thread_rank() % (kN / kCols) * kCols;
    float sum[kRows][kCols] = {};
    for (int64_t k = 0; k < p.k; k += kK) {
      fill_tile<kM, kK, kBlockSize>(block, a, p.left().window(tile.row, k, kM, kK));
      fill_tile<kK, kN, kBlockSize>(block, b, p.right().window(k, tile.col, kK, kN));
      block.sync();
      multiply(a + row * kK, b + col, sum);
      block.sync();
    }
    store(p.result().window(tile.row, tile.col, kM, kN).from(row, col), sum);
  }

 private:
  GRADUS_HD static void multiply(const float* a, const float* b, float (&sum)[kRows][kCols]) {
    GRADUS_UNROLL
    for (int l = 0; l < kK; ++l) {
      float x[kRows], y[kCols];
      GRADUS_UNROLL
      for (int i = 0; i < kRows; ++i) x[i] = a[i * kK + l];
      GRADUS_UNROLL
      for (int j = 0; j < kCols; ++j) y[j] = b[l * kN + j];
      GRADUS_UNROLL
      for (int i = 0; i < kRows; ++i) {
        GRADUS_UNROLL
        for (int j = 0; j < kCols; ++j) sum[i][j] = std::fma(x[i], y[j], sum[i][j]);
      }
    }
  }

  GRADUS_HD static void store(const Window<float>& c, const float (&sum)[kRows][kCols]) {
    GRADUS_UNROLL
    for (int i = 0; i < kRows; ++i) {
      GRADUS_UNROLL
      for (int j = 0; j < kCols; ++j)
        if (c.has(i, j)) *c.at(i, j) = sum[i][j];
    }
  }
};

}  // namespace gradus::kernels::ladder

GRADUS_KERNEL(gradus::kernels::ladder::RegisterTiles<>);
