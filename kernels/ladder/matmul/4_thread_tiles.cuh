// Step 4: a thread computes several elements of a column of C.
//
// It reads a number of B once and multiplies it with kRows of A: (1 + 1 / kRows) numbers from shared memory
// for each multiplication instead of two, and the tile of C grows without more threads.
//
// What limits it: shared memory still, as the numbers of A are each used once by a thread. Step 5 gives a
// thread several columns too.
#pragma once
#include <kernels/ladder/matmul/product.cuh>

namespace gradus::kernels::ladder {

/// A tile of C has kM x kN elements, kRows of them a thread; K is walked in steps of kK.
template <int kM = 64, int kN = 64, int kK = 8, int kRows = 8>
struct ThreadTiles {
  static constexpr const char* kName = "matmul step 4, thread tiles";
  static constexpr int kBlockSize = kM / kRows * kN, kBlocksPerSm = 1;
  Product<float> p;

  static constexpr bool supports(int block_size) { return block_size == kBlockSize; }
  int64_t groups(int) const { return tiles<kM, kN>(p); }
  size_t shared_bytes(int) const { return shared_size<float>(kM * kK) + shared_size<float>(kK * kN); }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    float* a = block.template shared<float>(kM * kK);
    float* b = block.template shared<float>(kK * kN);
    const Corner tile = tile_of<kM, kN>(block.group_index(), p);
    const int row = block.thread_rank() / kN * kRows, col = block.thread_rank() % kN;
    float sum[kRows] = {};
    for (int64_t k = 0; k < p.k; k += kK) {
      fill_tile<kM, kK, kBlockSize>(block, a, p.left().window(tile.row, k, kM, kK));
      fill_tile<kK, kN, kBlockSize>(block, b, p.right().window(k, tile.col, kK, kN));
      block.sync();
      multiply(a + row * kK, b + col, sum);
      block.sync();
    }
    const Window c = p.result().window(tile.row, tile.col, kM, kN).from(row, col);
    for (int i = 0; i < kRows; ++i)
      if (c.has(i, 0)) *c.at(i, 0) = sum[i];
  }

 private:
  GRADUS_HD static void multiply(const float* a, const float* b, float (&sum)[kRows]) {
    GRADUS_UNROLL
    for (int l = 0; l < kK; ++l) {
      const float y = b[l * kN];
      GRADUS_UNROLL
      for (int i = 0; i < kRows; ++i) sum[i] = std::fma(a[i * kK + l], y, sum[i]);
    }
  }
};

}  // namespace gradus::kernels::ladder

GRADUS_KERNEL(gradus::kernels::ladder::ThreadTiles<>);
