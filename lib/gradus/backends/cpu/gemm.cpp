#include <gradus/backends/cpu/gemm.h>
#include <gradus/base/parallel.h>

#include <algorithm>
#include <cmath>
#include <vector>

// The tile of y that stays in registers is kRows x kLanes. b is copied into panels of kLanes columns, so that
// the inner loop reads one row of a panel and kRows numbers of a for each k. This file alone is compiled with
// contraction on (lib/CMakeLists.txt): `c += a * b` on vectors is one fused instruction.
//
// A panel's row is 64 bytes, in vectors of the size that the processor has: 6 x 1 of AVX-512's, 6 x 2 of
// AVX's 16 registers. A wider type than its registers is one that the compiler keeps in memory.
namespace gradus::cpu {
namespace {

constexpr int kRows = 6;
#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
constexpr int kVectors = 64 / kVectorBytes;  // in a row of a panel

template <class T>
constexpr int kLanes = 64 / sizeof(T);  // of a panel's row

template <class T>
struct Vector {
  typedef T Type __attribute__((vector_size(kVectorBytes), aligned(sizeof(T))));
  static constexpr int kSize = kVectorBytes / sizeof(T);
};

// A row of a panel, and one of y's tile.
template <class T>
struct Row {
  using V = typename Vector<T>::Type;
  static constexpr int kSize = Vector<T>::kSize;
  V part[kVectors];

  static Row load(const T* from) {
    Row row;
    for (int v = 0; v < kVectors; ++v) row.part[v] = *reinterpret_cast<const V*>(from + v * kSize);
    return row;
  }
  void store(T* to) const {
    for (int v = 0; v < kVectors; ++v) *reinterpret_cast<V*>(to + v * kSize) = part[v];
  }
  void add_product(T a, const Row& b) {
    for (int v = 0; v < kVectors; ++v) part[v] += a * b.part[v];
  }
};

// R rows of y, one panel of b, all of k.
template <class T, int R>
void tile(int64_t k, Matrix<const T> a, const T* panel, const T* bias, Matrix<T> y, int columns) {
  T start[kLanes<T>] = {};
  if (bias) std::copy_n(bias, columns, start);
  Row<T> sum[R];
  for (int r = 0; r < R; ++r) sum[r] = Row<T>::load(start);
  for (int64_t i = 0; i < k; ++i) {
    const Row<T> row = Row<T>::load(panel + i * kLanes<T>);
    const T* column = a.data + i * a.column_stride;
    for (int r = 0; r < R; ++r) sum[r].add_product(column[r * a.row_stride], row);
  }
  for (int r = 0; r < R; ++r) {
    T* out = y.data + r * y.row_stride;
    if (columns == kLanes<T> && y.column_stride == 1) {
      sum[r].store(out);
    } else {
      T whole[kLanes<T>];
      sum[r].store(whole);
      for (int c = 0; c < columns; ++c) out[c * y.column_stride] = whole[c];
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
  for (int64_t i = 0; i < k; ++i) {
    const T* from = b.data + i * b.row_stride + first * b.column_stride;
    T* to = panel + i * kLanes<T>;
    if (b.column_stride == 1 && columns == kLanes<T>) {
      Row<T>::load(from).store(to);
    } else {
      int c = 0;
      for (; c < columns; ++c) to[c] = from[c * b.column_stride];
      for (; c < kLanes<T>; ++c) to[c] = T(0);
    }
  }
}

}  // namespace

template <class T>
void gemm(int64_t m, int64_t n, int64_t k, Matrix<const T> a, Matrix<const T> b, const T* bias, Matrix<T> y) {
  const int64_t panels = (n + kLanes<T> - 1) / kLanes<T>;
  const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 16) / std::max<int64_t>(1, m * k * kLanes<T>));
  parallel_for(0, panels, grain, [&](int64_t begin, int64_t end) {
    thread_local std::vector<T> panel;
    if (panel.size() < static_cast<size_t>(k * kLanes<T>)) panel.resize(k * kLanes<T>);
    for (int64_t p = begin; p < end; ++p) {
      const int64_t first = p * kLanes<T>;
      const int columns = static_cast<int>(std::min<int64_t>(kLanes<T>, n - first));
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
