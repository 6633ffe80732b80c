// Step 9: warpgroups. The tensor cores fetch their operands from shared memory themselves, beside the
// threads.
//
// A warpgroup begins the product of a whole tile, 64 x 256 x 64, with four instructions, and while it is made
// the threads fetch what comes after. So operands need no registers, which are left to sums: 128 x 256
// elements of C a block, 85 flop per byte of global memory. Four buffers: one is multiplied, one may still
// be, and two are on their way.
//
// What limits it: shared memory, of which a multiprocessor's tensor cores and copies together ask for what it
// delivers, and the threads' copy instructions and addresses. The TMA would fetch a tile with one instruction
// (for matrices whose rows begin at multiples of 16 bytes), for warps that do nothing else; and blocks in a
// cluster could share what they fetch. Vendors' libraries do both.
#pragma once
#include <kernels/blocks/async_copy.cuh>
#include <kernels/blocks/wgmma.cuh>
#include <kernels/ladder/matmul/vec4.cuh>

namespace gradus::kernels::ladder {

/// A tile of C has kM x kN elements, multiples of 64, and a warpgroup for 64 rows; K is walked in steps
/// of 64. Needs sm_90a; there kN is 256.
template <int kM = 128, int kN = 256, int kStages = 4>
struct Warpgroups {
  static constexpr const char* kName = "matmul step 9, warpgroups";
  static constexpr int kBlockSize = kM / 64 * kWarpgroupSize, kBlocksPerSm = 1;
  Product<BFloat16> p;

  static constexpr bool supports(int block_size) { return block_size == kBlockSize; }
  int64_t groups(int) const { return tiles<kM, kN>(p); }
  size_t shared_bytes(int) const { return shared_size<BFloat16>(kShared); }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    BFloat16* a = first_slab(block.template shared<BFloat16>(kShared));
    BFloat16* b = a + kStages * kSizeA;
    const Corner tile = banded_tile_of<kM, kN, 8>(block.group_index(), p);
    const int row = block.thread_rank() / kWarpgroupSize * 64;
    AsyncCopies<B> copies;
    WarpgroupProducts<B> products;
    float sum[kN / 2] = {};
    for (int stage = 0; stage < kAhead; ++stage)
      fetch(block, copies, a + stage * kSizeA, b + stage * kSizeB, tile, stage * kK);
    int now = 0, next = kAhead;  // buffers: to compute from, to fetch into
    for (int64_t k = 0; k < p.k; k += kK) {
      copies.template wait<kAhead - 1>();
      products.publish();
      block.sync();  // the copies of all have arrived, and no product reads the buffer `next` any more
      multiply(block, products, a + now * kSizeA + row * kK, b + now * kSizeB, sum);
      fetch(block, copies, a + next * kSizeA, b + next * kSizeB, tile, k + kAhead * kK);
      products.template wait<1>(sum);  // the product before this one is done
      now = now + 1 == kStages ? 0 : now + 1;
      next = next + 1 == kStages ? 0 : next + 1;
    }
    products.template wait<0>(sum);
    store(p.result().window(tile.row, tile.col, kM, kN).from(row, 0), block.thread_rank() % kWarpgroupSize,
          sum);
  }

 private:
  static constexpr int kK = kSlabCols, kAhead = kStages - 2;  // tiles that are on their way
  static constexpr int kSizeA = kM * kK, kSizeB = kK * kN;
  static constexpr int kShared = kStages * (kSizeA + kSizeB) + kSlabAlignment / 2;  // elements
  static_assert(kM % 64 == 0 && kN % kSlabCols == 0 && kStages >= 3);

  /// One slab for A's rows, and one for each 64 columns of B.
  template <class B>
  GRADUS_HD void fetch(B& block, AsyncCopies<B>& copies, BFloat16* a, BFloat16* b, Corner tile,
                       int64_t k) const {
    if (k < p.k) {
      fetch_slab<kM>(block, copies, a, p.left().window(tile.row, k, kM, kK), p.left().has_vectors());
      GRADUS_UNROLL
      for (int j = 0; j < kN; j += kSlabCols)
        fetch_slab<kK>(block, copies, b + j * kK, p.right().window(k, tile.col + j, kK, kSlabCols),
                       p.right().has_vectors());
    }
    copies.commit();  // beyond the end an empty group, so that wait() counts the same
  }

  template <int kRows, class B>
  GRADUS_HD static void fetch_slab(B& block, AsyncCopies<B>& copies, BFloat16* slab,
                                   const Window<const BFloat16>& from, bool vectors) {
    if (!vectors || !from.has(kRows - 1, kSlabCols - 1)) return fill_slab<kRows>(block, slab, from);
    constexpr int kStep = kBlockSize / 8;  // rows that the threads copy at a time, 16 bytes each
    const int i = block.thread_rank() / 8, j = block.thread_rank() % 8 * 8;
    const BFloat16* first = from.at(i, j);
    BFloat16* to = slab + in_slab(i, j);
    GRADUS_UNROLL
    for (int down = 0; down < kRows; down += kStep)
      copies.template copy<16>(to + down * kSlabCols, first + down * from.stride);
  }
  /// The same at the edges of a matrix, with zeros beyond, and where rows begin anywhere.
  template <int kRows, class B>
  GRADUS_HD static void fill_slab(B& block, BFloat16* slab, const Window<const BFloat16>& from) {
    GRADUS_NO_UNROLL
    for (int e = block.thread_rank(); e < kRows * kSlabCols; e += kBlockSize)
      slab[in_slab(e / kSlabCols, e % kSlabCols)] = from.at_or_zero(e / kSlabCols, e % kSlabCols);
  }

  template <class B>
  GRADUS_HD static void multiply(B& block, WarpgroupProducts<B>& products, const BFloat16* a,
                                 const BFloat16* b, float (&sum)[kN / 2]) {
    constexpr int kEightRows = 8 * kSlabCols * sizeof(BFloat16);
    products.begin();
    GRADUS_UNROLL
    for (int l = 0; l < kK; l += 16)
      products.multiply(block, sum, {a + l, kEightRows, 16},
                        {b + l * kSlabCols, kEightRows, kK / 8 * kEightRows});
    products.commit();
  }

  GRADUS_HD void store(const Window<float>& c, int thread, const float (&sum)[kN / 2]) const {
    const bool pairs = p.n % 2 == 0 && reinterpret_cast<uintptr_t>(p.c) % 8 == 0;
    GRADUS_UNROLL
    for (int e = 0; e < kN / 2; e += 2) {
      const SumPlace at = place_of_sum(thread, e);
      store2(c, at.row, at.col, pairs, {{sum[e], sum[e + 1]}});
    }
  }
};

}  // namespace gradus::kernels::ladder

GRADUS_KERNEL(gradus::kernels::ladder::Warpgroups<>);
