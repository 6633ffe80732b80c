// Kernels that compute an element from its logical (row-major) index, and from what lies there in another
// tensor: random numbers, sequences, dropout. Four at a time, because Philox gives four.
//
// A functor has `Value`, the type it computes in, kReads, whether it wants x, and
//   void operator()(uint64_t first, Value (&v)[4]) const
// which makes elements first … first + 3 (first a multiple of 4) of x's.
#pragma once
#include <kernels/blocks/launch.cuh>
#include <kernels/blocks/nest.cuh>
#include <kernels/blocks/pack.cuh>

#include "kernels/indexed.cuh"

namespace gradus::kernels {

/// Row-major tensors: a thread has the next kEach elements.
template <class T, class F>
struct IndexedRow {
  static constexpr const char* kName = F::kName;
  static constexpr int kPack = kPackSize<T>, kEach = kPack > 4 ? kPack : 4;
  T* y;
  const T* x;
  int64_t n;
  F f;
  bool packed;  // do packs of 16 bytes start at both addresses?

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int block_size) const { return blocks_for(n, kEach * block_size); }
  size_t shared_bytes(int) const { return 0; }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    const int64_t first = element(block) * kEach;
    if (first >= n) return;
    const bool whole = packed && first + kEach <= n;
    Pack<T, kEach> elements;
    if constexpr (F::kReads) load(first, whole, elements);
    GRADUS_UNROLL
    for (int g = 0; g < kEach; g += 4) {
      typename F::Value v[4] = {};
      if constexpr (F::kReads) {
        GRADUS_UNROLL
        for (int j = 0; j < 4; ++j) v[j] = static_cast<typename F::Value>(elements.v[g + j]);
      }
      f(static_cast<uint64_t>(first + g), v);
      GRADUS_UNROLL
      for (int j = 0; j < 4; ++j) elements.v[g + j] = static_cast<T>(v[j]);
    }
    store(first, whole, elements);
  }

 private:
  GRADUS_HD void load(int64_t first, bool whole, Pack<T, kEach>& elements) const {
    GRADUS_UNROLL
    for (int p = 0; p < kEach; p += kPack) {
      if (whole) {
        const auto pack = load_pack<kPack>(x + first + p);
        GRADUS_UNROLL
        for (int j = 0; j < kPack; ++j) elements.v[p + j] = pack.v[j];
      } else {
        GRADUS_UNROLL
        for (int j = 0; j < kPack; ++j)  // past the end, something
          elements.v[p + j] = x[first + p + j < n ? first + p + j : first];
      }
    }
  }
  GRADUS_HD void store(int64_t first, bool whole, const Pack<T, kEach>& elements) const {
    GRADUS_UNROLL
    for (int p = 0; p < kEach; p += kPack) {
      if (whole) {
        Pack<T, kPack> pack;
        GRADUS_UNROLL
        for (int j = 0; j < kPack; ++j) pack.v[j] = elements.v[p + j];
        store_pack(y + first + p, pack);
      } else {
        GRADUS_UNROLL
        for (int j = 0; j < kPack; ++j)
          if (first + p + j < n) y[first + p + j] = elements.v[p + j];
      }
    }
  }
};

/// Any strides, in the order of y's memory: a thread has G neighbours of the last dimension, 4 where its size
/// is a multiple of that. The nest's operands are y, x and the logical index of the first of them.
template <class T, class F, int G>
struct IndexedNest {
  static constexpr const char* kName = F::kName;
  T* y;
  const T* x;
  Nest<3> nest;
  int64_t y_step, x_step;  // along the last dimension
  uint64_t start;          // logical index of the nest's first element
  F f;

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int block_size) const { return blocks_for(nest.count, block_size); }
  size_t shared_bytes(int) const { return 0; }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    const int64_t i = element(block);
    if (i >= nest.count) return;
    uint32_t at[1][3];
    nest.locate({static_cast<uint32_t>(i)}, at);
    T* to = y + at[0][0];
    const uint64_t index = start + at[0][2];
    const auto one = static_cast<int>(index % 4);  // of G = 1: which of the four
    typename F::Value v[4] = {};
    if constexpr (F::kReads) {
      GRADUS_UNROLL
      for (int j = 0; j < 4; ++j)
        if (G == 4 || j == one)
          v[j] = static_cast<typename F::Value>(x[at[0][1] + (G == 4 ? j * x_step : 0)]);
    }
    f(G == 4 ? index : index - index % 4, v);
    GRADUS_UNROLL
    for (int j = 0; j < 4; ++j)
      if (G == 4 || j == one) to[G == 4 ? j * y_step : 0] = static_cast<T>(v[j]);
  }
};

/// y = f(x) by logical index, `x` null unless F::kReads: calls run(body) for the bodies that do it, of which
/// there is more than one only where a strided tensor passes `limit` elements.
template <class T, class F, class Run>
void run_indexed(const F& f, const TensorArg& y, const TensorArg* x, const Run& run,
                 int64_t limit = kMaxOffset) {
  if (y.numel() == 0) return;
  const TensorArg& other = x != nullptr ? *x : y;
  const T* from = x != nullptr ? x->data<T>() : nullptr;
  if (is_row_major(y) && is_row_major(other)) {
    run(IndexedRow<T, F>{y.data<T>(), from, y.numel(), f, all_aligned({y.address, other.address})});
    return;
  }
  TensorArg to = y, second = other, index = y;
  int64_t step = 1;
  for (int d = y.dim() - 1; d >= 0; --d) index.strides[d] = step, step *= y.sizes[d];
  const int last = y.dim() - 1;
  const bool fours = y.sizes[last] % 4 == 0;
  if (fours) {
    for (TensorArg* t : {&to, &second, &index}) t->sizes[last] /= 4, t->strides[last] *= 4;
  }
  for_each_part(elementwise::make_loop<2>(to, {&second, &index}), limit,
                [&](const auto& loop, const int64_t* start) {
                  const auto go = [&]<int G>(std::integral_constant<int, G>) {
                    run(IndexedNest<T, F, G>{y.data<T>() + start[0], from != nullptr ? from + start[1] : from,
                                             Nest<3>(loop), y.strides[last], other.strides[last],
                                             static_cast<uint64_t>(start[2]), f});
                  };
                  fours ? go(std::integral_constant<int, 4>()) : go(std::integral_constant<int, 1>());
                });
}

}  // namespace gradus::kernels
