// Reductions over any dimensions of a strided tensor: sum, mean, prod, norm, amax, amin, and where the
// extrema are. The order in which elements are combined depends on shape and strides only.
//
// Where the reduced elements are neighbours in memory, the threads of a team share a row. Where the outputs
// are, neighbouring threads take neighbouring outputs. Few outputs are cut into parts for many blocks; a
// second launch combines the parts.
#pragma once
#include <kernels/blocks/launch.cuh>
#include <kernels/blocks/loop_dims.cuh>
#include <kernels/blocks/pack.cuh>
#include <kernels/blocks/reduce.cuh>
#include <kernels/blocks/teams.cuh>

#include "kernels/reduce.cuh"

namespace gradus::kernels {

/// Reduction F (of reduction::Add, Max, …) of elements of T into elements of Y.
template <class F, class T, class Y>
struct FoldInto {
  static constexpr const char* kName = F::kName;
  using Total = reduction::Accumulator<T>;
  Y* y;
  int64_t count;  // elements that go into one of y

  GRADUS_HD Total none() const {
    return static_cast<Total>(F::template identity<std::conditional_t<std::is_integral_v<T>, T, Total>>());
  }
  GRADUS_HD Total map(T x, int64_t) const { return F::template map<Total>(static_cast<Total>(x)); }
  GRADUS_HD Total operator()(Total a, Total b) const { return F::combine(a, b); }
  GRADUS_HD void store(int64_t at, Total total) const { y[at] = static_cast<Y>(F::finish(total, count)); }
};

/// Where the largest (Op ArgMax) or smallest (ArgMin) element is, and what stands there (values may be null).
template <class Op, class T>
struct FindInto {
  static constexpr const char* kName = std::is_same_v<Op, ArgMax> ? "max" : "min";
  using Total = Found<reduction::Accumulator<T>>;
  T* values;
  int64_t* indices;

  GRADUS_HD Total none() const { return {0, -1}; }
  GRADUS_HD Total map(T x, int64_t i) const { return {static_cast<reduction::Accumulator<T>>(x), i}; }
  GRADUS_HD Total operator()(Total a, Total b) const { return Op{}(a, b); }
  GRADUS_HD void store(int64_t at, Total found) const {
    indices[at] = found.index;
    if (values != nullptr) values[at] = static_cast<T>(found.value);
  }
};

/// How a reduction is laid out. A pack is V elements along x's innermost dimension; all counts and strides of
/// that dimension are in packs.
struct ReduceShape {
  LoopDims kept, reduced;
  int64_t outputs, length;    // packs of outputs where vertical; packs that go into an output
  int64_t rest = 0;           // elements after the last whole pack, if there is one output only
  int64_t output_stride = 0;  // between the outputs of a pack, in y
  bool vertical = false;      // neighbouring threads have neighbouring outputs
  Teams teams;                // else
  int width = 0;              // most threads side by side, where vertical: a power of two
  int64_t parts = 1, part_length = 0;

  GRADUS_HD int width_of(int block_size) const {
    int w = width < block_size ? width : block_size;
    while (block_size % w != 0) w /= 2;
    return w;
  }
  GRADUS_HD int64_t tiles(int block_size) const {
    const int64_t each = vertical ? width_of(block_size) : teams.rows_of(block_size);
    return (outputs + each - 1) / each;
  }
};

/// y = Op over x; with parts > 1, each part's totals into partial, [outputs, parts].
template <class Op, class T, int V>
struct ReduceElements {
  static constexpr const char* kName = Op::kName;
  using Total = typename Op::Total;
  const T* x;
  Op op;
  Total* partial;
  ReduceShape shape;

  static constexpr bool supports(int block_size) { return whole_warps(block_size); }
  int64_t groups(int block_size) const { return shape.tiles(block_size) * shape.parts; }
  size_t shared_bytes(int block_size) const {
    return shared_size<Total>(shape.vertical ? block_size * V : reduce_slots(block_size));
  }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    int64_t tile = block.group_index(), part = 0;
    if (shape.parts > 1) {
      const int64_t tiles = shape.tiles(block.size());
      part = tile / tiles, tile -= part * tiles;
    }
    const TeamMember team = shape.vertical ? column(block, tile) : shape.teams.member(block, tile);
    const int64_t begin = part * shape.part_length, next = begin + shape.part_length;
    const int64_t end = next < shape.length ? next : shape.length;
    const bool live = team.row < shape.outputs;
    const Offsets at = live ? shape.kept.at(team.row) : Offsets{0, 0};
    Total lane[V];
    fold(x + at.x, begin + team.rank, live ? end : 0, team.size, lane);
    if (shape.vertical) return finish_columns(block, tile, part, lane);

    Total* scratch = block.template shared<Total>(reduce_slots(block.size()));
    Total total = lane[0];
    GRADUS_UNROLL
    for (int v = 1; v < V; ++v) total = op(total, lane[v]);
    if (live && team.rank == 0 && end == shape.length) total = fold_rest(x + at.x, total);
    total = team.reduce(block, total, op, scratch);
    if (live && team.rank == 0) finish(team.row, at.y, part, total);
  }

 private:
  // Packs that a thread loads before it needs the first.
  static constexpr int kInFlight = V == 1 ? 8 : 4;

  // Where outputs lie side by side, the threads of one are the block's width apart.
  template <class B>
  GRADUS_HD TeamMember column(const B& block, int64_t tile) const {
    const int width = shape.width_of(block.size());
    return {tile * width + block.thread_rank() % width, block.thread_rank() / width, block.size() / width,
            true};
  }
  template <class B>
  GRADUS_HD void finish_columns(B& block, int64_t tile, int64_t part, const Total (&lane)[V]) const {
    Total* scratch = block.template shared<Total>(block.size() * V);
    const int width = shape.width_of(block.size()), height = block.size() / width;
    GRADUS_UNROLL
    for (int v = 0; v < V; ++v) scratch[block.thread_rank() * V + v] = lane[v];
    block.sync();
    for (int i = block.thread_rank(); i < width * V; i += block.size()) {
      const int64_t output = tile * width + i / V;
      if (output >= shape.outputs) break;
      Total total = scratch[i];
      for (int h = 1; h < height; ++h) total = op(total, scratch[h * width * V + i]);
      finish(output * V + i % V, shape.kept.at(output).y + i % V * shape.output_stride, part, total);
    }
  }
  GRADUS_HD Total fold_rest(const T* from, Total total) const {
    for (int64_t i = shape.length * V; i < shape.length * V + shape.rest; ++i)
      total = op(total, op.map(from[i], i));
    return total;
  }

  // lane[v] = the fold of element v of the packs begin, begin + step, … < end.
  GRADUS_HD void fold(const T* from, int64_t begin, int64_t end, int64_t step, Total (&lane)[V]) const {
    GRADUS_UNROLL
    for (int v = 0; v < V; ++v) lane[v] = op.none();
    if (shape.length >= WideDivisor::kSmall &&
        shape.reduced.count > 1) {  // seldom: short code, not fast code
      GRADUS_NO_UNROLL
      for (int64_t i = begin; i < end; i += step) add(load_pack<V>(from + shape.reduced.at(i).x), i, lane);
      return;
    }
    int64_t i = begin;
    for (; i + (kInFlight - 1) * step < end; i += kInFlight * step) {
      Pack<T, V> pack[kInFlight];
      GRADUS_UNROLL
      for (int k = 0; k < kInFlight; ++k) pack[k] = load(from, i + k * step);
      GRADUS_UNROLL
      for (int k = 0; k < kInFlight; ++k) add(pack[k], i + k * step, lane);
    }
    GRADUS_NO_UNROLL
    for (; i < end; i += step) add(load(from, i), i, lane);
  }
  GRADUS_HD Pack<T, V> load(const T* from, int64_t i) const {
    const int64_t at = shape.reduced.count == 1 ? i * shape.reduced.x[0]
                                                : shape.reduced.x_of_small(static_cast<uint32_t>(i));
    return load_pack<V>(from + at);
  }
  GRADUS_HD void add(const Pack<T, V>& pack, int64_t i, Total (&lane)[V]) const {
    GRADUS_UNROLL
    for (int v = 0; v < V; ++v) lane[v] = op(lane[v], op.map(pack.v[v], i));
  }

  GRADUS_HD void finish(int64_t output, int64_t y_at, int64_t part, Total total) const {
    if (shape.parts == 1)
      op.store(y_at, total);
    else
      partial[output * shape.parts + part] = total;
  }
};

/// y = Op over the totals of each output's parts.
template <class Op>
struct ReduceParts {
  static constexpr const char* kName = Op::kName;
  using Total = typename Op::Total;
  const Total* partial;
  Op op;
  LoopDims kept;
  int64_t outputs, parts;
  Teams teams;

  static constexpr bool supports(int block_size) { return whole_warps(block_size); }
  int64_t groups(int block_size) const { return teams.groups(outputs, block_size); }
  size_t shared_bytes(int block_size) const { return shared_size<Total>(teams.slots(block_size)); }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    Total* scratch = block.template shared<Total>(teams.slots(block.size()));
    const TeamMember team = teams.member(block, block.group_index());
    const bool live = team.row < outputs;
    Total total = op.none();
    for (int64_t p = team.rank; live && p < parts; p += team.size)
      total = op(total, partial[team.row * parts + p]);
    total = team.reduce(block, total, op, scratch);
    if (live && team.rank == 0) op.store(kept.at(team.row).y, total);
  }
};

namespace reduce_plan {

inline constexpr int64_t kBlocks = 2048;  // keep any GPU busy, twice over
inline constexpr int64_t kLeast = 8;      // packs that a thread of a part should have

inline int64_t count_of(const reduction::Dim* dims, int count) {
  int64_t n = 1;
  for (int d = 0; d < count; ++d) n *= dims[d].size;
  return n;
}

// Are neighbouring outputs closer in memory than neighbouring elements of one?
inline bool is_vertical(const reduction::Nest& nest) {
  const reduction::Dim &kept = nest.kept[nest.kept_count - 1],
                       &reduced = nest.reduced[nest.reduced_count - 1];
  return kept.size > 1 && kept.x > 0 && kept.x < reduced.x;
}

// Whether x can be read in packs: whole ones along its innermost dimension, each at a multiple of its size.
inline bool packs(const reduction::Nest& nest, const void* x, int pack) {
  const bool vertical = is_vertical(nest);
  const reduction::Dim& inner =
      vertical ? nest.kept[nest.kept_count - 1] : nest.reduced[nest.reduced_count - 1];
  const bool one_row = !vertical && nest.reduced_count == 1 && count_of(nest.kept, nest.kept_count) == 1;
  if (inner.x != 1 || inner.size < pack || (inner.size % pack != 0 && !one_row) || !all_aligned({x}))
    return false;
  auto fits = [&](const reduction::Dim& dim) { return &dim == &inner || dim.x % pack == 0; };
  for (int d = 0; d < nest.kept_count; ++d)
    if (!fits(nest.kept[d])) return false;
  for (int d = 0; d < nest.reduced_count; ++d)
    if (!fits(nest.reduced[d])) return false;
  return true;
}

// The dimensions, the innermost in packs of `pack`.
inline LoopDims dims_of(const reduction::Dim* dims, int count, int pack) {
  LoopDims result;
  for (int d = 0; d < count; ++d) {
    const int64_t p = d == count - 1 ? pack : 1;
    result.push_back(dims[d].size / p, dims[d].x * p, dims[d].y * p);
  }
  return result;
}

// Cuts what is reduced, so that there are blocks enough.
inline void cut(ReduceShape& shape, int block_size) {
  const int64_t tiles = shape.tiles(block_size);
  const int threads = shape.vertical ? block_size / shape.width_of(block_size) : block_size;
  const bool whole = shape.vertical || shape.teams.lanes == 0;
  int64_t parts = whole && tiles < kBlocks ? kBlocks / tiles : 1;
  parts = std::min(parts, shape.length / (threads * kLeast));
  shape.parts = std::max<int64_t>(1, parts);
  shape.part_length = (shape.length + shape.parts - 1) / shape.parts;
  if (shape.part_length > 0) shape.parts = (shape.length + shape.part_length - 1) / shape.part_length;
}

// A warp side by side reads whole lines; more where there is little to reduce and many outputs.
inline int width_for(int64_t outputs, int64_t length, int block_size) {
  int width = 1;
  while (width < kWarpSize && width < outputs) width *= 2;
  while (width < block_size && length < block_size / width * 2 * kLeast && outputs / width > kBlocks)
    width *= 2;
  return width;
}

/// For blocks of block_size threads and packs of `pack` elements. There is at least one output.
inline ReduceShape shape_of(const reduction::Nest& nest, int pack, int block_size) {
  ReduceShape shape;
  shape.vertical = is_vertical(nest);
  shape.kept = dims_of(nest.kept, nest.kept_count, shape.vertical ? pack : 1);
  shape.reduced = dims_of(nest.reduced, nest.reduced_count, shape.vertical ? 1 : pack);
  shape.outputs = shape.kept.numel();
  shape.length = shape.reduced.numel();
  if (shape.vertical) {
    shape.output_stride = nest.kept[nest.kept_count - 1].y;
    shape.width = width_for(shape.outputs, shape.length, block_size);
  } else {
    shape.rest = nest.reduced[nest.reduced_count - 1].size % pack;
    shape.teams = Teams::for_length(shape.length);
  }
  cut(shape, block_size);
  return shape;
}

}  // namespace reduce_plan
}  // namespace gradus::kernels
