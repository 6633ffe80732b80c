// Tiles fetched by asynchronous copies where they lie inside their matrix, and by plain ones at its edges.
#pragma once
#include <kernels/blocks/async_copy.cuh>
#include <kernels/ladder/matmul/product.cuh>

namespace gradus::kernels::ladder {

/// fill_tile() in a way that costs the threads least. Where the window is a whole tile, a copy of 16 bytes
/// begins; elsewhere, and where `vectors` (has_vectors() of the matrix) is not given, fill_tile() does it at
/// once. The window begins at a multiple of 16 bytes in its row, as do the rows of the tile.
template <int kRows, int kCols, int kStride, int kThreads, class B, class T>
GRADUS_HD void fetch_tile(B& block, AsyncCopies<B>& copies, T* tile, const Window<const T>& from,
                          bool vectors) {
  constexpr int kVector = 16 / sizeof(T), kAcross = kCols / kVector, kStep = kThreads / kAcross;
  static_assert(kThreads % kAcross == 0 && kRows % kStep == 0, "each thread has the same number of vectors");
  if (!vectors || !from.has(kRows - 1, kCols - 1))
    return fill_tile<kRows, kCols, kThreads, kStride>(block, tile, from);
  const int i = block.thread_rank() / kAcross, j = block.thread_rank() % kAcross * kVector;
  const T* first = from.at(i, j);
  GRADUS_UNROLL
  for (int step = 0; step < kRows; step += kStep)
    copies.template copy<16>(tile + (i + step) * kStride + j, first + step * from.stride);
}

/// fill_tile() with tile[j * kStride + i] = from[i, j].
template <int kRows, int kCols, int kThreads, int kStride, class B>
GRADUS_HD void fill_transposed(B& block, float* tile, const Window<const float>& from) {
  GRADUS_NO_UNROLL
  for (int e = block.thread_rank(); e < kRows * kCols; e += kThreads) {
    const int i = e / kCols, j = e % kCols;
    tile[j * kStride + i] = from.at_or_zero(i, j);
  }
}

/// The same for fill_transposed(): 4 bytes a copy. Of a warp's threads, 8 lie along a row, which fills
/// 32-byte sectors, and 4 along a column: with a stride of 4 more than a multiple of 32, each writes another
/// bank.
template <int kRows, int kCols, int kStride, int kThreads, class B>
GRADUS_HD void fetch_transposed(B& block, AsyncCopies<B>& copies, float* tile,
                                const Window<const float>& from) {
  constexpr int kStep = kThreads / 8;
  static_assert(kCols % 8 == 0 && kRows % kStep == 0, "each thread has the same number of elements");
  if (!from.has(kRows - 1, kCols - 1))
    return fill_transposed<kRows, kCols, kThreads, kStride>(block, tile, from);
  const int i = block.thread_rank() / 8, j = block.thread_rank() % 8;
  const float* first = from.at(i, j);
  GRADUS_UNROLL
  for (int down = 0; down < kRows; down += kStep) {
    GRADUS_UNROLL
    for (int right = 0; right < kCols; right += 8)
      copies.template copy<4>(tile + (j + right) * kStride + i + down, first + down * from.stride + right);
  }
}

}  // namespace gradus::kernels::ladder
