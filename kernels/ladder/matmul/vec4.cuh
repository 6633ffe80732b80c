// Floats that move as one word: four with 16 bytes, two with 8.
#pragma once
#include <kernels/ladder/matmul/product.cuh>

namespace gradus::kernels::ladder {

struct alignas(16) Vec4 {
  float v[4];
};

/// The address must be a multiple of 16.
GRADUS_HD inline Vec4 load4(const float* from) { return *reinterpret_cast<const Vec4*>(from); }
GRADUS_HD inline void store4(float* to, Vec4 value) { *reinterpret_cast<Vec4*>(to) = value; }

/// Elements (i, j) to (i, j + 3), zeros beyond the edges. j % 4 = 0; `vectors`: has_vectors() of the matrix.
GRADUS_HD inline Vec4 load4(const Window<const float>& from, int i, int j, bool vectors) {
  if (vectors) return from.has(i, j) ? load4(from.at(i, j)) : Vec4{};
  return {{from.at_or_zero(i, j), from.at_or_zero(i, j + 1), from.at_or_zero(i, j + 2),
           from.at_or_zero(i, j + 3)}};
}

/// The same the other way; what lies beyond the edges is left out.
GRADUS_HD inline void store4(const Window<float>& to, int i, int j, bool vectors, Vec4 value) {
  if (vectors) {
    if (to.has(i, j)) store4(to.at(i, j), value);
    return;
  }
  GRADUS_UNROLL
  for (int e = 0; e < 4; ++e)
    if (to.has(i, j + e)) *to.at(i, j + e) = value.v[e];
}

struct alignas(8) Vec2 {
  float v[2];
};
/// Elements (i, j) and (i, j + 1), j even; what lies beyond the edges is left out. `pairs`: each row begins
/// at a multiple of 8 bytes.
GRADUS_HD inline void store2(const Window<float>& to, int i, int j, bool pairs, Vec2 value) {
  if (pairs) {
    if (to.has(i, j)) *reinterpret_cast<Vec2*>(to.at(i, j)) = value;
    return;
  }
  if (to.has(i, j)) *to.at(i, j) = value.v[0];
  if (to.has(i, j + 1)) *to.at(i, j + 1) = value.v[1];
}

/// sum += x y, the outer product of kRows numbers and kCols, four a word.
template <int kRows, int kCols>
GRADUS_HD void add_outer_product(const Vec4 (&x)[kRows / 4], const Vec4 (&y)[kCols / 4],
                                 float (&sum)[kRows][kCols]) {
  GRADUS_UNROLL
  for (int i = 0; i < kRows; ++i) {
    GRADUS_UNROLL
    for (int j = 0; j < kCols; ++j) sum[i][j] = std::fma(x[i / 4].v[i % 4], y[j / 4].v[j % 4], sum[i][j]);
  }
}

/// The numbers of columns j to j + 3 of row i.
template <int kRows, int kCols>
GRADUS_HD Vec4 four_of(const float (&sum)[kRows][kCols], int i, int j) {
  return {{sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]}};
}

}  // namespace gradus::kernels::ladder
