// Moving memory in the widest words that its layout allows.
#pragma once
#include <algorithm>
#include <type_traits>

#include "kernels/copy.cuh"

namespace gradus::kernels {

/// The most that a thread reads or writes at once.
struct alignas(16) Word16 {
  uint64_t half[2];
};

/// Calls f with an integer type of `bytes` bytes, or Word16.
template <class F>
void visit_word(size_t bytes, const F& f) {
  if (bytes == sizeof(Word16)) return f(Word16{});
  copy::visit_size(bytes, f);
}

/// Counts a nest whose first two operands are moved (elements of `size` bytes at y and x) in words instead of
/// elements, and returns the bytes of a word: `most` where rows, addresses and strides allow it. `step` is a
/// further distance, in elements of x, that words must fit.
template <int N>
size_t widen(elementwise::LoopNest<N>& nest, size_t size, const void* y, const void* x,
             int64_t* step = nullptr, size_t most = sizeof(Word16)) {
  const int inner = nest.ndim - 1;
  if (nest.strides[inner][0] != 1 || nest.strides[inner][1] != 1) return size;
  for (int o = 2; o <= N; ++o)
    if (nest.strides[inner][o] != 0) return size;
  uint64_t bits = most / size | (reinterpret_cast<uintptr_t>(y) | reinterpret_cast<uintptr_t>(x)) / size |
                  static_cast<uint64_t>(nest.sizes[inner]);
  for (int d = 0; d < inner; ++d) bits |= static_cast<uint64_t>(nest.strides[d][0] | nest.strides[d][1]);
  if (step != nullptr) bits |= static_cast<uint64_t>(*step);
  const auto ratio = static_cast<int64_t>(bits & (~bits + 1));  // the largest power of two that divides all
  nest.sizes[inner] /= ratio;
  for (int d = 0; d < inner; ++d) nest.strides[d][0] /= ratio, nest.strides[d][1] /= ratio;
  if (step != nullptr) *step /= ratio;
  return size * static_cast<size_t>(ratio);
}

}  // namespace gradus::kernels
