// Step 7: the next tile is on its way while this one is multiplied, and each warp has a tile of its own.
//
// Two buffers: asynchronous copies fill one while the block computes from the other, so one sync() a tile is
// enough and the latency of global memory is hidden. A warp's 8 x 4 threads cover its 64 x 32 elements of C
// in such a way that for each k the warp reads 128 neighbouring bytes of A and 64 of B: no bank conflicts.
//
// What limits it: the float32 units. Each k costs a thread 64 fma and 4 loads; there is little left to save.
// Step 8 uses other units.
#pragma once
#include <kernels/ladder/matmul/async_tile.cuh>
#include <kernels/ladder/matmul/vec4.cuh>

namespace gradus::kernels::ladder {

/// A tile of C has kM x kN elements, kWarpM x kWarpN of them a warp and 8 x 8 a thread; K is walked in steps
/// of kK.
template <int kM = 128, int kN = 128, int kK = 16, int kWarpM = 64, int kWarpN = 32>
struct WarpTiles {
  static constexpr const char* kName = "matmul step 7, double-buffered warp tiles";
  static constexpr int kBlockSize = (kM / kWarpM) * (kN / kWarpN) * kWarpSize, kBlocksPerSm = 2;
  Product<float> p;

  static constexpr bool supports(int block_size) { return block_size == kBlockSize; }
  int64_t groups(int) const { return tiles<kM, kN>(p); }
  size_t shared_bytes(int) const { return shared_size<float>(2 * kSizeA) + shared_size<float>(2 * kSizeB); }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    float* a = block.template shared<float>(2 * kSizeA);
    float* b = block.template shared<float>(2 * kSizeB);
    const Corner tile = tile_of<kM, kN>(block.group_index(), p);
    const Place place = place_of(block.thread_rank());
    AsyncCopies<B> copies;
    float sum[8][8] = {};
    if (p.k > 0) fetch(block, copies, tile, 0, a, b);
    int now = 0;  // the buffer to compute from
    for (int64_t k = 0; k < p.k; k += kK, now = 1 - now) {
      copies.template wait<0>();
      block.sync();  // the copies of all have arrived, and nobody reads the other buffer any more
      if (k + kK < p.k) fetch(block, copies, tile, k + kK, a + (1 - now) * kSizeA, b + (1 - now) * kSizeB);
      multiply(a + now * kSizeA + place.row, b + now * kSizeB + place.col, sum);
    }
    store(p.result().window(tile.row, tile.col, kM, kN).from(place.row, place.col), sum);
  }

 private:
  static constexpr int kStride = kM + 4;  // of the transposed tile of A
  static constexpr int kSizeA = kK * kStride, kSizeB = kK * kN;
  // A thread has 4 x 4 elements in each quarter of its warp's tile.
  static constexpr int kHalfM = kWarpM / 2, kHalfN = kWarpN / 2;
  static_assert(kHalfM / 4 * (kHalfN / 4) == kWarpSize, "a thread has 8 x 8 elements");

  struct Place {
    int row, col;
  };
  /// Where in the block's tile the first quarter of a thread's elements begins.
  GRADUS_HD static constexpr Place place_of(int thread) {
    const int warp = thread / kWarpSize, lane = thread % kWarpSize;
    return {warp / (kN / kWarpN) * kWarpM + lane / (kHalfN / 4) * 4,
            warp % (kN / kWarpN) * kWarpN + lane % (kHalfN / 4) * 4};
  }

  template <class B>
  GRADUS_HD void fetch(B& block, AsyncCopies<B>& copies, Corner tile, int64_t k, float* a, float* b) const {
    fetch_transposed<kM, kK, kStride, kBlockSize>(block, copies, a, p.left().window(tile.row, k, kM, kK));
    fetch_tile<kK, kN, kN, kBlockSize>(block, copies, b, p.right().window(k, tile.col, kK, kN),
                                       p.right().has_vectors());
    copies.commit();
  }

  GRADUS_HD static void multiply(const float* a, const float* b, float (&sum)[8][8]) {
    GRADUS_UNROLL
    for (int l = 0; l < kK; ++l) {
      const Vec4 x[2] = {load4(a + l * kStride), load4(a + l * kStride + kHalfM)};
      const Vec4 y[2] = {load4(b + l * kN), load4(b + l * kN + kHalfN)};
      add_outer_product<8, 8>(x, y, sum);
    }
  }

  GRADUS_HD void store(const Window<float>& c, const float (&sum)[8][8]) const {
    const bool vectors = p.result().has_vectors();
    GRADUS_UNROLL
    for (int i = 0; i < 8; ++i) {
      GRADUS_UNROLL
      for (int j = 0; j < 8; j += 4)
        store4(c, i / 4 * kHalfM + i % 4, j / 4 * kHalfN, vectors, four_of(sum, i, j));
    }
  }
};

}  // namespace gradus::kernels::ladder

GRADUS_KERNEL(gradus::kernels::ladder::WarpTiles<>);
