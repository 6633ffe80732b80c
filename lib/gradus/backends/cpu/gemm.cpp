#include <gradus/backends/cpu/gemm.h>
#include <gradus/base/parallel.h>

#include <algorithm>
#include <cmath>
#include <vector>

// The tile of y that stays in registers is kRows x kLanes. b is copied into panels of kLanes columns, so that
// the inner loop reads one vector of b and kRows numbers of a for each k. This file alone is compiled with
// contraction on (lib/CMakeLists.txt): `c += a * b` on vectors is one fused instruction.
namespace gradus::cpu {
namespace {

constexpr int kRows = 6;

template <class T>
struct Vector {
  static constexpr int kLanes = 64 / sizeof(T);
  typedef T Type __attribute__((vector_size(64), aligned(sizeof(T))));
};

template <class T>
using V = typename Vector<T>::Type;

// R rows of y, one panel of b, all of k.
template <class T, int R>
void tile(int64_t k, Matrix<const T> a, const T* panel, const T* bias, Matrix<T> y, int columns) {
  constexpr int kLanes = Vector<T>::kLanes;
  V<T> start = {};
  if (bias)
    for (int c = 0; c < columns; ++c) start[c] = bias[c];
  V<T> sum[R];
  for (int r = 0; r < R; ++r) sum[r] = start;
  for (int64_t i = 0; i < k; ++i) {
    const V<T> bv = *reinterpret_cast<const V<T>*>(panel + i * kLanes);
    const T* column = a.data + i * a.column_stride;
    for (int r = 0; r < R; ++r) sum[r] += column[r * a.row_stride] * bv;
  }
  for (int r = 0; r < R; ++r) {
    T* out = y.data + r * y.row_stride;
    if (columns == kLanes && y.column_stride == 1) {
      *reinterpret_cast<V<T>*>(out) = sum[r];
    } else {
      for (int c = 0; c < columns; ++c) out[c * y.column_stride] = sum[r][c];
    }
  }
}

template <class T>
void tile_rows(int64_t rows, int64_t k, Matrix<const T> a, const T* panel, const T* bias, Matrix<T> y,
               int columns) {
  switch (rows) {
    case 6:
      return tile<T, 6>(k, a, panel, bias, y, columns);
    case 5:
      return tile<T, 5>(k, a, panel, bias, y, columns);
    case 4:
      return tile<T, 4>(k, a, panel, bias, y, columns);
    case 3:
      return tile<T, 3>(k, a, panel, bias, y, columns);
    case 2:
      return tile<T, 2>(k, a, panel, bias, y, columns);
    case 1:
      return tile<T, 1>(k, a, panel, bias, y, columns);
  }
}

// Columns [first, first + columns) of b, k rows, padded with zeros to kLanes.
template <class T>
void pack(int64_t k, Matrix<const T> b, int64_t first, int columns, T* panel) {
  constexpr int kLanes = Vector<T>::kLanes;
  for (int64_t i = 0; i < k; ++i) {
    const T* from = b.data + i * b.row_stride + first * b.column_stride;
    T* to = panel + i * kLanes;
    if (b.column_stride == 1 && columns == kLanes) {
      *reinterpret_cast<V<T>*>(to) = *reinterpret_cast<const V<T>*>(from);
    } else {
      int c = 0;
      for (; c < columns; ++c) to[c] = from[c * b.column_stride];
      for (; c < kLanes; ++c) to[c] = T(0);
    }
  }
}

}  // namespace

template <class T>
void gemm(int64_t m, int64_t n, int64_t k, Matrix<const T> a, Matrix<const T> b, const T* bias, Matrix<T> y) {
  constexpr int kLanes = Vector<T>::kLanes;
  const int64_t panels = (n + kLanes - 1) / kLanes;
  const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 16) / std::max<int64_t>(1, m * k * kLanes));
  parallel_for(0, panels, grain, [&](int64_t begin, int64_t end) {
    thread_local std::vector<T> panel;
    if (panel.size() < static_cast<size_t>(k * kLanes)) panel.resize(k * kLanes);
    for (int64_t p = begin; p < end; ++p) {
      const int64_t first = p * kLanes;
      const int columns = static_cast<int>(std::min<int64_t>(kLanes, n - first));
      pack(k, b, first, columns, panel.data());
      for (int64_t r = 0; r < m; r += kRows) {
        tile_rows<T>(
            std::min<int64_t>(kRows, m - r), k, {a.data + r * a.row_stride, a.row_stride, a.column_stride},
            panel.data(), bias ? bias + first : nullptr,
            {y.data + r * y.row_stride + first * y.column_stride, y.row_stride, y.column_stride}, columns);
      }
    }
  });
}

template void gemm<float>(int64_t, int64_t, int64_t, Matrix<const float>, Matrix<const float>, const float*,
                          Matrix<float>);
template void gemm<double>(int64_t, int64_t, int64_t, Matrix<const double>, Matrix<const double>,
                           const double*, Matrix<double>);

}  // namespace gradus::cpu
