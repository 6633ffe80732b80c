// The loop nest of reductions over any dimensions of a strided tensor, for cpu and sim; what an operation
// does in it is in reduce.cuh.
//
// The order of the additions is fixed by shape and strides: it does not depend on the number of threads or on
// the width of the vector registers. The reduced elements of an output are cut into leaves; a leaf is folded
// in a fixed number of lanes, and the leaves' results are folded pairwise, which keeps rounding errors small.
#pragma once
#include <gradus/base/parallel.h>
#include <gradus/runtime/stream.h>
#include <gradus/runtime/tensor_arg.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <tuple>

namespace gradus {

/// y = the reduction of x over the dimensions in which y, of x's rank, has size 1. `count`: how many elements
/// of x go into one of y.
struct ReduceArgs {
  TensorArg x, y;
  int64_t count;
  static constexpr auto operands = std::tuple{in(&ReduceArgs::x), out(&ReduceArgs::y)};
};

namespace reduction {

inline constexpr int kLanes = 32;          // accumulators of a row
inline constexpr int64_t kLeaf = 4096;     // elements of a leaf along a row
inline constexpr int64_t kLeafRows = 128;  // rows of a leaf that goes down the columns
inline constexpr int64_t kTile = 64;       // most columns of a leaf
inline constexpr int64_t kGrain = 65536;   // elements a thread should have at least
inline constexpr int64_t kManyTasks = 64;  // so many tasks keep any thread busy
inline constexpr int kLevels = 48;

/// What sums are made in: float for the half types, int64 for integers and bool.
template <class T>
using Accumulator = std::conditional_t<std::is_integral_v<T>, int64_t, ComputeType<T>>;

/// A dimension: its size and its strides in x and y.
struct Dim {
  int64_t size, x, y;
};

/// The loops of a reduction: kept and reduced dimensions, innermost last, of each at least one.
struct Nest {
  int kept_count = 0, reduced_count = 0;
  Dim kept[kMaxDims], reduced[kMaxDims];
  bool vertical = false;  // neighbours in memory belong to different outputs
};

inline void append(Dim* dims, int& count, Dim dim) {
  Dim* last = dims + count - 1;
  if (count > 0 && last->x == dim.x * dim.size && last->y == dim.y * dim.size) {
    *last = {last->size * dim.size, dim.x, dim.y};
  } else {
    dims[count++] = dim;
  }
}

inline Nest make_nest(const TensorArg& x, const TensorArg& y) {
  Nest nest;
  int order[kMaxDims], n = 0;
  for (int d = 0; d < x.sizes.size(); ++d) {
    if (x.sizes[d] == 1) continue;
    int at = n++;
    for (; at > 0 && x.strides[order[at - 1]] < x.strides[d]; --at) order[at] = order[at - 1];
    order[at] = d;
  }
  for (int k = 0; k < n; ++k) {
    const int d = order[k];
    if (y.sizes[d] == 1) {
      append(nest.reduced, nest.reduced_count, {x.sizes[d], x.strides[d], 0});
    } else {
      append(nest.kept, nest.kept_count, {x.sizes[d], x.strides[d], y.strides[d]});
    }
  }
  if (nest.kept_count == 0) nest.kept[nest.kept_count++] = {1, 0, 0};
  if (nest.reduced_count == 0) nest.reduced[nest.reduced_count++] = {1, 0, 0};
  const Dim& last = nest.reduced[nest.reduced_count - 1];
  nest.vertical = nest.kept[nest.kept_count - 1].x == 1 && last.x != 1;
  return nest;
}

/// What an operation brings for one element type; C is its accumulator.
template <class C>
struct Kernel {
  /// acc[c] = the fold of x[at + r * step + c] over r < n, for c < width.
  void (*leaf)(const ReduceArgs&, int64_t at, int64_t n, int64_t step, int64_t width, C* acc);
  /// a[c] = combine(a[c], b[c])
  void (*combine)(C* a, const C* b, int64_t width);
  /// y[at + c * step] = finish(acc[c])
  void (*store)(const ReduceArgs&, int64_t at, int64_t step, int64_t width, const C* acc);
  C identity;
};

/// Folds the values pushed as a balanced binary tree does. A tree cut into parts of 2^k values each, whose
/// totals are pushed into another one, gives the same result.
template <class C>
class Cascade {
 public:
  Cascade(const Kernel<C>& kernel, int64_t width) : kernel_(kernel), width_(width) {}

  void push(const C* value) {
    int l = 0;
    for (uint64_t c = count_++; c & 1; c >>= 1) value = fold(l++, value);
    std::memcpy(level_[l], value, static_cast<size_t>(width_) * sizeof(C));
  }
  const C* total() {
    if (count_ == 0) std::fill_n(level_[0], width_, kernel_.identity);
    const C* value = nullptr;
    uint64_t c = std::max<uint64_t>(count_, 1);
    for (int l = 0; c != 0; c >>= 1, ++l)
      if (c & 1) value = value ? fold(l, value) : level_[l];
    return value;
  }

 private:
  const C* fold(int l, const C* value) {
    kernel_.combine(level_[l], value, width_);
    return level_[l];
  }

  const Kernel<C>& kernel_;
  int64_t width_;
  uint64_t count_ = 0;
  C level_[kLevels][kTile];
};

/// A reduction cut into tiles (outputs that are folded together) and leaves (pieces of what is reduced).
template <class C>
class Loop {
 public:
  Loop(const ReduceArgs& args, const Kernel<C>& kernel)
      : args_(args), kernel_(kernel), nest_(make_nest(args.x, args.y)) {
    leaf_ = nest_.vertical ? kLeafRows : kLeaf;
    tile_ = nest_.vertical ? kTile : 1;
    tiles_ = parts(nest_.kept, nest_.kept_count, tile_);
    leaves_ = parts(nest_.reduced, nest_.reduced_count, leaf_);
  }

  void run() const {
    if (tiles_ == 0) return;
    const int64_t work = args_.x.numel() / tiles_;
    if (tiles_ >= kManyTasks || work < 2 * kGrain) {
      parallel_for(0, tiles_, std::max<int64_t>(1, kGrain / std::max<int64_t>(work, 1)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t t = begin; t < end; ++t) finish(t);
                   });
    } else {
      run_split(work);
    }
  }

 private:
  struct Tile {
    int64_t x, y, step, width;
  };

  static int64_t parts(const Dim* dims, int count, int64_t part) {
    int64_t n = (dims[count - 1].size + part - 1) / part;
    for (int d = 0; d + 1 < count; ++d) n *= dims[d].size;
    return n;
  }
  // Splits the number of a tile or leaf into the part of the inner dimension and the offsets of the others.
  static int64_t locate(const Dim* dims, int count, int64_t part, int64_t i, int64_t& x, int64_t& y) {
    const Dim& inner = dims[count - 1];
    const int64_t per_row = (inner.size + part - 1) / part;
    const int64_t at = i % per_row * part;
    x += at * inner.x, y += at * inner.y;
    i /= per_row;
    for (int d = count - 2; d >= 0 && i > 0; i /= dims[d].size, --d)
      x += i % dims[d].size * dims[d].x, y += i % dims[d].size * dims[d].y;
    return std::min(part, inner.size - at);
  }

  Tile tile(int64_t t) const {
    Tile tile{0, 0, nest_.kept[nest_.kept_count - 1].y, 0};
    tile.width = locate(nest_.kept, nest_.kept_count, tile_, t, tile.x, tile.y);
    return tile;
  }
  void push_leaves(Cascade<C>& cascade, const Tile& tile, int64_t begin, int64_t end) const {
    C acc[kTile];
    for (int64_t l = begin; l < end; ++l) {
      int64_t x = tile.x, y = 0;
      const int64_t n = locate(nest_.reduced, nest_.reduced_count, leaf_, l, x, y);
      kernel_.leaf(args_, x, n, nest_.reduced[nest_.reduced_count - 1].x, tile.width, acc);
      cascade.push(acc);
    }
  }
  void finish(int64_t t) const {
    const Tile at = tile(t);
    if (leaves_ == 1) {  // the many small reductions
      C acc[kTile];
      kernel_.leaf(args_, at.x, nest_.reduced[0].size, nest_.reduced[0].x, at.width, acc);
      kernel_.store(args_, at.y, at.step, at.width, acc);
      return;
    }
    Cascade<C> cascade(kernel_, at.width);
    push_leaves(cascade, at, 0, leaves_);
    kernel_.store(args_, at.y, at.step, at.width, cascade.total());
  }

  // Few outputs of many elements each: the leaves too are shared among the threads, in parts of 2^k.
  [[gnu::noinline]] void run_split(int64_t work) const {
    int64_t part = 1;
    while (part < leaves_ && part * (work / leaves_) < kGrain) part *= 2;
    const int64_t splits = (leaves_ + part - 1) / part;
    const std::unique_ptr<C[]> totals(new C[static_cast<size_t>(tiles_ * splits * kTile)]);
    parallel_for(0, tiles_ * splits, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Tile at = tile(i / splits);
        const int64_t first = i % splits * part;
        Cascade<C> cascade(kernel_, at.width);
        push_leaves(cascade, at, first, std::min(leaves_, first + part));
        std::memcpy(&totals[i * kTile], cascade.total(), static_cast<size_t>(at.width) * sizeof(C));
      }
    });
    for (int64_t t = 0; t < tiles_; ++t) {
      const Tile at = tile(t);
      Cascade<C> cascade(kernel_, at.width);
      for (int64_t s = 0; s < splits; ++s) cascade.push(&totals[(t * splits + s) * kTile]);
      kernel_.store(args_, at.y, at.step, at.width, cascade.total());
    }
  }

  const ReduceArgs& args_;
  const Kernel<C>& kernel_;
  Nest nest_;
  int64_t leaf_, tile_, tiles_, leaves_;
};

template <class C>
[[gnu::noinline]] void run(const ReduceArgs& args, const Kernel<C>& kernel) {
  Loop<C>(args, kernel).run();
}

}  // namespace reduction
}  // namespace gradus
