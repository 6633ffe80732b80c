// Losses that compare input and target element by element, and their gradients; 16 bytes at a time.
#pragma once
#include <kernels/blocks/launch.cuh>
#include <kernels/blocks/pack.cuh>
#include <kernels/blocks/reduce.cuh>

#include "kernels/pair_loss.cuh"

namespace gradus::kernels {

/// each[i] = F's value of x[i] and t[i]; or, where `sums` is given, sums[g] = the sum over the chunk of block
/// g.
template <class F, class T>
struct PairLossForward {
  static constexpr const char* kName = F::kName;
  using C = ComputeType<T>;
  const T* x;
  const T* t;
  T* each;
  C* sums;
  int64_t n, chunk;  // chunk: a multiple of kPackSize
  C p;
  bool packed;  // all addresses are multiples of 16

  static constexpr bool supports(int block_size) { return whole_warps(block_size); }
  int64_t groups(int) const { return (n + chunk - 1) / chunk; }
  size_t shared_bytes(int block_size) const { return shared_size<C>(reduce_slots(block_size)); }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    const int64_t begin = block.group_index() * chunk, end = begin + chunk < n ? begin + chunk : n;
    C sum = 0;
    for_each_pack<kPackSize<T>>(block, begin, end, packed, [&](auto width, int64_t i) {
      constexpr int W = decltype(width)::value;
      const Pack<T, W> from = load_pack<W>(x + i), to = load_pack<W>(t + i);
      Pack<T, W> y;
      GRADUS_UNROLL
      for (int j = 0; j < W; ++j) {
        const C value = F::value(static_cast<C>(from.v[j]), static_cast<C>(to.v[j]), p);
        sum += value;
        y.v[j] = static_cast<T>(value);
      }
      if (each != nullptr) store_pack<W>(each + i, y);
    });
    if (sums == nullptr) return;
    sum = block_reduce(block, sum, Sum{}, block.template shared<C>(reduce_slots(block.size())));
    if (block.thread_rank() == 0) sums[block.group_index()] = sum;
  }
};

/// dx[i] = dy F's slope of x[i] and t[i]; dy[i] with `each`, else *dy / divisor.
template <class F, class T>
struct PairLossBackward {
  static constexpr const char* kName = F::kName;
  using C = ComputeType<T>;
  const T* x;
  const T* t;
  const T* dy;
  T* dx;
  int64_t n, chunk;
  C p, divisor;
  bool each, packed;

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int) const { return (n + chunk - 1) / chunk; }
  size_t shared_bytes(int) const { return 0; }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    const int64_t begin = block.group_index() * chunk, end = begin + chunk < n ? begin + chunk : n;
    const C one = each ? C{0} : static_cast<C>(*dy) / divisor;
    for_each_pack<kPackSize<T>>(block, begin, end, packed, [&](auto width, int64_t i) {
      constexpr int W = decltype(width)::value;
      const Pack<T, W> from = load_pack<W>(x + i), to = load_pack<W>(t + i);
      Pack<T, W> g, y;
      if (each) g = load_pack<W>(dy + i);
      GRADUS_UNROLL
      for (int j = 0; j < W; ++j)
        y.v[j] = static_cast<T>((each ? static_cast<C>(g.v[j]) : one) *
                                F::slope(static_cast<C>(from.v[j]), static_cast<C>(to.v[j]), p));
      store_pack<W>(dx + i, y);
    });
  }
};

}  // namespace gradus::kernels
