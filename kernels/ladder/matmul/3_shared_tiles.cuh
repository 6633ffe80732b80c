// Step 3: a block copies a tile of A and a tile of B to shared memory and works from there.
//
// Each number that a block fetches from global memory is used kSide times, so the traffic falls by that
// factor.
//
// What limits it: shared memory. Each multiplication reads two numbers from it, and it delivers 32 a cycle,
// where the arithmetic units could use several times as many. Step 4 keeps one of the two in a register.
#pragma once
#include <kernels/ladder/matmul/product.cuh>

namespace gradus::kernels::ladder {

/// A tile of C has kSide x kSide elements, a thread each.
template <int kSide = 32>
struct SharedTiles {
  static constexpr const char* kName = "matmul step 3, shared tiles";
  static constexpr int kBlockSize = kSide * kSide, kBlocksPerSm = 1;
  Product<float> p;

  static constexpr bool supports(int block_size) { return block_size == kBlockSize; }
  int64_t groups(int) const { return tiles<kSide, kSide>(p); }
  size_t shared_bytes(int) const { return 2 * shared_size<float>(kSide * kSide); }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    float* a = block.template shared<float>(kSide * kSide);
    float* b = block.template shared<float>(kSide * kSide);
    const Corner tile = tile_of<kSide, kSide>(block.group_index(), p);
    const int i = block.thread_rank() / kSide, j = block.thread_rank() % kSide;
    float sum = 0;
    for (int64_t k = 0; k < p.k; k += kSide) {
      fill_tile<kSide, kSide, kBlockSize>(block, a, p.left().window(tile.row, k, kSide, kSide));
      fill_tile<kSide, kSide, kBlockSize>(block, b, p.right().window(k, tile.col, kSide, kSide));
      block.sync();  // the tiles are there
      for (int l = 0; l < kSide; ++l) sum = std::fma(a[i * kSide + l], b[l * kSide + j], sum);
      block.sync();  // and may be overwritten
    }
    const Window c = p.result().window(tile.row, tile.col, kSide, kSide);
    if (c.has(i, j)) *c.at(i, j) = sum;
  }
};

}  // namespace gradus::kernels::ladder

GRADUS_KERNEL(gradus::kernels::ladder::SharedTiles<>);
