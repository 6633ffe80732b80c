#include <gradus/backends/cpu/gemm.h>
#include <gradus/base/random.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace gradus::cpu {
namespace {

// A rows x columns matrix of normal numbers; `by_columns` is its memory order, `gap` elements follow each
// run.
template <class T>
struct Stored {
  Stored(int64_t rows, int64_t columns, bool by_columns, int64_t gap, uint64_t stream)
      : row_stride(by_columns ? 1 : columns + gap),
        column_stride(by_columns ? rows + gap : 1),
        values(static_cast<size_t>((rows + gap) * (columns + gap) + 1), std::nan("")) {
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        values[static_cast<size_t>(i * row_stride + j * column_stride)] =
            PhiloxStream{1, stream}.normal<T>(static_cast<uint64_t>(i * columns + j));
  }
  Matrix<const T> view() const { return {values.data(), row_stride, column_stride}; }
  T at(int64_t i, int64_t j) const { return values[static_cast<size_t>(i * row_stride + j * column_stride)]; }
  int64_t row_stride, column_stride;
  std::vector<T> values;
};

// Each sum runs over k in order with fused multiply-add, from the bias: the result is known to the last bit.
template <class T>
void check(int64_t m, int64_t n, int64_t k) {
  for (int layout = 0; layout < 8; ++layout) {
    const Stored<T> a(m, k, layout & 1, 1, 10), b(k, n, layout & 2, 2, 11), bias(1, n, false, 0, 12);
    Stored<T> y(m, n, layout & 4, 3, 13);
    const bool with_bias = layout % 3 != 0;
    gemm<T>(m, n, k, a.view(), b.view(), with_bias ? bias.values.data() : nullptr,
            {y.values.data(), y.row_stride, y.column_stride});
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        T want = with_bias ? bias.at(0, j) : T(0);
        for (int64_t l = 0; l < k; ++l) want = std::fma(a.at(i, l), b.at(l, j), want);
        ASSERT_EQ(y.at(i, j), want) << m << " x " << n << " x " << k << ", layout " << layout << " at " << i
                                    << ", " << j;
      }
    // What lies between the rows was not touched.
    size_t poison = 0, expected = y.values.size() - static_cast<size_t>(m * n);
    for (T v : y.values) poison += std::isnan(v);
    ASSERT_EQ(poison, expected);
  }
}

TEST(Gemm, sums_in_order_at_every_remainder_of_its_tiles) {
  for (int64_t m : {1, 5, 6, 7, 13})
    for (int64_t n : {1, 7, 8, 9, 16, 17, 33})
      for (int64_t k : {0, 1, 3, 40}) {
        check<float>(m, n, k);
        check<double>(m, n, k);
      }
}

}  // namespace
}  // namespace gradus::cpu
