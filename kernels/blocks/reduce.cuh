// Reductions over the threads of a block, in an order that depends on the block size only.
#pragma once
#include <kernels/blocks/block.cuh>

namespace gradus::kernels {

struct Sum {
  template <class T>
  GRADUS_HD T operator()(T a, T b) const {
    return a + b;
  }
};
/// The larger; NaN if either is.
struct Max {
  template <class T>
  GRADUS_HD T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};
/// The smaller; NaN if either is.
struct Min {
  template <class T>
  GRADUS_HD T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};

/// A value and where it was found.
template <class T>
struct Found {
  T value;
  int64_t index;  // negative: nothing found yet
};
/// Which of two finds `Better` prefers (std::greater's or std::less's sense); NaN beats all, the lower index
/// breaks ties.
template <class Better>
struct Arg {
  template <class T>
  GRADUS_HD Found<T> operator()(Found<T> a, Found<T> b) const {
    if (a.index < 0 || b.index < 0) return a.index < 0 ? b : a;
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    const bool a_wins = a_nan ? !b_nan : !b_nan && Better{}(a.value, b.value);
    const bool b_wins = b_nan ? !a_nan : !a_nan && Better{}(b.value, a.value);
    if (a_wins || b_wins) return a_wins ? a : b;
    return a.index < b.index ? a : b;
  }
};
struct Greater {
  template <class T>
  GRADUS_HD bool operator()(T a, T b) const {
    return a > b;
  }
};
struct Less {
  template <class T>
  GRADUS_HD bool operator()(T a, T b) const {
    return a < b;
  }
};
using ArgMax = Arg<Greater>;
using ArgMin = Arg<Less>;

/// Elements of shared memory that block_reduce needs.
constexpr int reduce_slots(int block_size) { return (block_size + kWarpSize - 1) / kWarpSize; }

/// Folds `value` over all threads of the block: within each warp by a butterfly of shuffles, then over the
/// warps in order. Every thread gets the same result. `scratch`: reduce_slots(size()) elements of shared
/// memory, free again on return. Block sizes: whole_warps().
template <Block B, class T, class Op>
GRADUS_HD T block_reduce(B& block, T value, Op op, T* scratch) {
  const int warp = block.warp_size();
  for (int mask = warp / 2; mask > 0; mask /= 2) value = op(value, block.shuffle_xor(value, mask));
  if (block.thread_rank() % warp == 0) scratch[block.thread_rank() / warp] = value;
  block.sync();
  T total = scratch[0];
  for (int w = 1; w < block.size() / warp; ++w) total = op(total, scratch[w]);
  block.sync();  // all have read before the scratch is written again
  return total;
}

}  // namespace gradus::kernels
