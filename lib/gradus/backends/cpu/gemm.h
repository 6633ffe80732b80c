// A plain tiled matrix product: what float64 uses, what small products use, and the tests' reference for
// oneDNN.
#pragma once
#include <cstdint>

namespace gradus::cpu {

/// A matrix by its first element and the step to the next row and column, in elements.
template <class T>
struct Matrix {
  T* data;
  int64_t row_stride, column_stride;
};

/// y = a b + bias, a is M x K, b is K x N; bias has N elements or is null. Sums run over k in order, with
/// fused multiply-add, so the result does not depend on tiling or threads. y must not overlap a or b.
template <class T>
void gemm(int64_t m, int64_t n, int64_t k, Matrix<const T> a, Matrix<const T> b, const T* bias, Matrix<T> y);

extern template void gemm<float>(int64_t, int64_t, int64_t, Matrix<const float>, Matrix<const float>,
                                 const float*, Matrix<float>);
extern template void gemm<double>(int64_t, int64_t, int64_t, Matrix<const double>, Matrix<const double>,
                                  const double*, Matrix<double>);

}  // namespace gradus::cpu
