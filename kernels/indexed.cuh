// Kernels that compute an element from its logical (row-major) index alone, whatever the output's strides:
// sequences and random numbers.
#pragma once
#include <gradus/base/parallel.h>
#include <gradus/runtime/tensor_arg.h>

namespace gradus::kernels {

inline bool is_row_major(const TensorArg& y) {
  int64_t step = 1;
  for (int d = y.dim() - 1; d >= 0; --d) {
    if (y.sizes[d] != 1 && y.strides[d] != step) return false;
    step *= y.sizes[d];
  }
  return true;
}

/// Where logical element i lies, in elements from the start.
GRADUS_HD inline int64_t element_offset(const TensorArg& y, int64_t i) {
  int64_t offset = 0;
  for (int d = y.sizes.size() - 1; d >= 0; --d) {
    offset += i % y.sizes[d] * y.strides[d];
    i /= y.sizes[d];
  }
  return offset;
}

/// The most elements that fill_by_index() asks for at once.
inline constexpr int64_t kIndexedChunk = 1024;

/// y[i] = value i of what make(first, n, values) writes for the elements first … first + n - 1. C is the type
/// it computes in; `first` is a multiple of kIndexedChunk and n at most that.
template <class T, class C, class Make>
void fill_by_index(const TensorArg& y, const Make& make) {
  constexpr int64_t kChunk = kIndexedChunk, kGrain = 16;
  const int64_t numel = y.numel();
  const bool row_major = is_row_major(y);
  T* out = y.data<T>();
  parallel_for(0, (numel + kChunk - 1) / kChunk, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t first = begin * kChunk; first < std::min(numel, end * kChunk); first += kChunk) {
      const int64_t n = std::min(kChunk, numel - first);
      C values[kChunk];
      make(first, n, values);
      if (row_major) {
        for (int64_t i = 0; i < n; ++i) out[first + i] = static_cast<T>(values[i]);
      } else {
        for (int64_t i = 0; i < n; ++i) out[element_offset(y, first + i)] = static_cast<T>(values[i]);
      }
    }
  });
}

}  // namespace gradus::kernels
