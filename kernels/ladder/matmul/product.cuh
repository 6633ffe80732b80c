// What every step of the ladder is given, and how C is divided among blocks.
#pragma once
#include <gradus/runtime/tensor_arg.h>

#include <cmath>
#include <kernels/blocks/launch.cuh>
#include <tuple>

namespace gradus::kernels::ladder {

/// a (M, K), b (K, N), c (M, N), each contiguous; c is float32.
struct ProductArgs {
  TensorArg a, b, c;
  static constexpr auto operands = std::tuple{in(&ProductArgs::a), in(&ProductArgs::b), out(&ProductArgs::c)};
};

/// The part of a row-major matrix that a tile covers: less than the tile at the edges.
template <class T>
struct Window {
  T* data;
  int64_t stride;  // from row to row
  int rows, cols;

  GRADUS_HD bool has(int i, int j) const { return i < rows && j < cols; }
  GRADUS_HD T* at(int i, int j) const { return data + i * stride + j; }
  /// What lies below and to the right of (i, j): a thread's share of a tile.
  GRADUS_HD Window from(int i, int j) const { return {at(i, j), stride, rows - i, cols - j}; }
  /// Zero outside: what a tile is filled up with, as it adds nothing to a sum.
  GRADUS_HD std::remove_const_t<T> at_or_zero(int i, int j) const {
    return has(i, j) ? *at(i, j) : std::remove_const_t<T>{};
  }
};

/// A row-major matrix.
template <class T>
struct Matrix {
  T* data;
  int64_t rows, cols;

  GRADUS_HD T* at(int64_t i, int64_t j) const { return data + i * cols + j; }
  /// What a tile of height x width at (row, col) covers.
  GRADUS_HD Window<T> window(int64_t row, int64_t col, int height, int width) const {
    return {at(row, col), cols, at_most(height, rows - row), at_most(width, cols - col)};
  }
  /// Does each row begin at a multiple of 16 bytes? Then 16 bytes from there lie inside whole or not at all.
  GRADUS_HD bool has_vectors() const {
    return cols % (16 / static_cast<int64_t>(sizeof(T))) == 0 && reinterpret_cast<uintptr_t>(data) % 16 == 0;
  }

 private:
  GRADUS_HD static int at_most(int limit, int64_t n) { return n < limit ? static_cast<int>(n) : limit; }
};

/// C = A B in row-major order: a [m, k], b [k, n], c [m, n]. K = 0 gives zeros.
///
/// Each element is summed in float32 by fma() in the order of k, on every step but the tensor cores': those
/// steps agree to the bit.
template <class T>
struct Product {
  const T* a;
  const T* b;
  float* c;
  int64_t m, n, k;

  static Product of(const ProductArgs& args) {
    return {args.a.data<const T>(), args.b.data<const T>(), args.c.data<float>(),
            args.a.sizes[0],        args.b.sizes[1],        args.a.sizes[1]};
  }
  GRADUS_HD Matrix<const T> left() const { return {a, m, k}; }
  GRADUS_HD Matrix<const T> right() const { return {b, k, n}; }
  GRADUS_HD Matrix<float> result() const { return {c, m, n}; }
};

/// The row and the column of C where a block's tile begins.
struct Corner {
  int64_t row, col;
};

/// C in tiles of kM x kN, a block each; the rest of a tile that reaches over the edge is left out.
template <int kM, int kN, class T>
constexpr int64_t tiles(const Product<T>& p) {
  return blocks_for(p.m, kM) * blocks_for(p.n, kN);
}
/// The tile of a block: along the rows of C. A grid has less than 2^31 blocks, so 32 bits are enough to count
/// tiles, and much faster to divide.
template <int kM, int kN, class T>
GRADUS_HD constexpr Corner tile_of(int64_t group, const Product<T>& p) {
  const auto block = static_cast<uint32_t>(group), across = static_cast<uint32_t>((p.n + kN - 1) / kN);
  return {int64_t{block / across} * kM, int64_t{block % across} * kN};
}

/// The tile of a block in bands of kBand rows of tiles, each numbered column by column.
template <int kM, int kN, int kBand, class T>
GRADUS_HD constexpr Corner banded_tile_of(int64_t group, const Product<T>& p) {
  const auto block = static_cast<uint32_t>(group), down = static_cast<uint32_t>((p.m + kM - 1) / kM),
             across = static_cast<uint32_t>((p.n + kN - 1) / kN);
  const uint32_t top = block / across / kBand * kBand;  // the band's first row
  const uint32_t height = down - top < kBand ? down - top : kBand;
  const uint32_t in_band = block - top * across;
  return {int64_t{top + in_band % height} * kM, int64_t{in_band / height} * kN};
}

/// The block's kThreads threads copy the window to a tile in shared memory, whose rows are kStride apart,
/// with zeros beyond the edges. An element a thread at a time.
template <int kRows, int kCols, int kThreads, int kStride = kCols, Block B, class T>
GRADUS_HD void fill_tile(B& block, T* tile, const Window<const T>& from) {
  for (int e = block.thread_rank(); e < kRows * kCols; e += kThreads) {
    const int i = e / kCols, j = e % kCols;
    tile[i * kStride + j] = from.at_or_zero(i, j);
  }
}

}  // namespace gradus::kernels::ladder
