// 2-D max pooling on blocks of threads; a thread for each place of the result.
#pragma once
#include <kernels/pool_block.cuh>

#include "kernels/max_pool2d.cuh"

namespace gradus::kernels {

/// y and positions from x, as MaxPoolArgs says.
template <class T, int V>
struct MaxPool2d {
  static constexpr const char* kName = "max_pool2d";
  const T* x;
  T* y;
  pooling::Positions positions;
  PoolThreads<V> threads;
  PoolAxis rows, columns;
  pooling::PlaneStrides plane;

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int block_size) const { return blocks_for(threads.nest.count, block_size); }
  size_t shared_bytes(int) const { return 0; }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    using C = ComputeType<T>;
    const int64_t i = element(block);
    if (i >= threads.nest.count) return;
    const auto at = threads.locate(i);
    const auto over = rows.span(at.row), across = columns.span(at.column);
    C best[V] = {};
    int32_t where[V] = {};
    bool first = true;
    for (int k = 0; k < over.count; ++k) {
      const int r = over.start + k * rows.dilation;
      if (r < 0 || r >= rows.size) continue;
      for (int l = 0; l < across.count; ++l) {
        const int s = across.start + l * columns.dilation;
        if (s < 0 || s >= columns.size) continue;
        const auto v = load_pack<V>(x + at.plane + plane.at(r, s));
        GRADUS_UNROLL
        for (int q = 0; q < V; ++q) {
          const C value = static_cast<C>(v.v[q]);
          const bool take = first || value > best[q] || value != value;
          best[q] = take ? value : best[q];
          where[q] = take ? k * columns.kernel + l : where[q];
        }
        first = false;
      }
    }
    Pack<T, V> out;
    GRADUS_UNROLL
    for (int q = 0; q < V; ++q) out.v[q] = static_cast<T>(best[q]);
    store_pack(y + at.result, out);
    positions.store(at.second, where);
  }
};

/// gx from gy: a thread adds up what the windows that hold its place have for it, in the windows' order.
template <class T, int V>
struct MaxPool2dGrad {
  static constexpr const char* kName = "max_pool2d_backward";
  const T* gy;
  pooling::Positions positions;
  T* gx;
  PoolThreads<V> threads;  // the second tensor is positions, the plane gy's
  PoolAxis rows, columns;
  pooling::PlaneStrides plane, positions_plane;

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int block_size) const { return blocks_for(threads.nest.count, block_size); }
  size_t shared_bytes(int) const { return 0; }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    using C = ComputeType<T>;
    const int64_t i = element(block);
    if (i >= threads.nest.count) return;
    const auto at = threads.locate(i);
    const auto down = rows.reach(at.row), right = columns.reach(at.column);
    C sum[V] = {};
    for (int r = down.first; r <= down.last; ++r) {
      const int k = rows.place(rows.span(r), at.row);
      if (k < 0) continue;
      for (int s = right.first; s <= right.last; ++s) {
        const int l = columns.place(columns.span(s), at.column);
        if (l < 0) continue;
        int32_t where[V];
        positions.load(at.second + positions_plane.at(r, s), where);
        const auto g = load_pack<V>(gy + at.plane + plane.at(r, s));
        GRADUS_UNROLL
        for (int q = 0; q < V; ++q)
          sum[q] += where[q] == k * columns.kernel + l ? static_cast<C>(g.v[q]) : C{0};
      }
    }
    Pack<T, V> out;
    GRADUS_UNROLL
    for (int q = 0; q < V; ++q) out.v[q] = static_cast<T>(sum[q]);
    store_pack(gx + at.result, out);
  }
};

namespace pooling {

struct RowAndColumn {
  int row, column;
};
/// Where in the input the position of an output is.
GRADUS_HD inline RowAndColumn position_of(const PoolThreads<1>::Place& at, const Positions& positions,
                                          const PoolAxis& rows, const PoolAxis& columns) {
  int32_t where[1];
  positions.load(at.second, where);
  return {rows.span(at.row).start + where[0] / columns.kernel * rows.dilation,
          columns.span(at.column).start + where[0] % columns.kernel * columns.dilation};
}

}  // namespace pooling

/// y = x at each output's position, in words of type W.
template <class W>
struct MaxPool2dPick {
  static constexpr const char* kName = "max_pool2d_pick";
  const W* x;
  pooling::Positions positions;
  W* y;
  PoolThreads<1> threads;
  PoolAxis rows, columns;
  pooling::PlaneStrides plane;

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int block_size) const { return blocks_for(threads.nest.count, block_size); }
  size_t shared_bytes(int) const { return 0; }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    const int64_t i = element(block);
    if (i >= threads.nest.count) return;
    const auto at = threads.locate(i);
    const auto [r, s] = pooling::position_of(at, positions, rows, columns);
    y[at.result] = x[at.plane + plane.at(r, s)];
  }
};

/// indices = row * width + column of each output's position.
struct MaxPool2dIndices {
  static constexpr const char* kName = "max_pool2d_indices";
  pooling::Positions positions;
  int64_t* indices;
  PoolThreads<1> threads;
  PoolAxis rows, columns;

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int block_size) const { return blocks_for(threads.nest.count, block_size); }
  size_t shared_bytes(int) const { return 0; }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    const int64_t i = element(block);
    if (i >= threads.nest.count) return;
    const auto at = threads.locate(i);
    const auto [r, s] = pooling::position_of(at, positions, rows, columns);
    indices[at.result] = int64_t{r} * columns.size + s;
  }
};

// Each calls run(body) for the bodies that do it, of which there is more than one only where a tensor passes
// `limit` elements.

template <class T, class Run>
void run_max_pool(const MaxPoolArgs& a, const Run& run, int64_t limit = kMaxOffset) {
  const auto rows = PoolAxis::of("max_pool2d", a.shape, 0, a.x.sizes[2], a.y.sizes[2]);
  const auto columns = PoolAxis::of("max_pool2d", a.shape, 1, a.x.sizes[3], a.y.sizes[3]);
  pooling::for_each_launch<kPackSize<T>>(
      pooling::make_loop(a.y, a.positions, false, a.x), {&a.x, &a.y, &a.positions}, limit,
      [&]<int V>(const PoolThreads<V>& threads, const int64_t* start) {
        run(MaxPool2d<T, V>{a.x.data<T>() + start[2], a.y.data<T>() + start[0],
                            pooling::Positions::of(a.positions, start[1]), threads, rows, columns,
                            pooling::PlaneStrides::of(a.x)});
      });
}

template <class T, class Run>
void run_max_pool_grad(const MaxPoolGradArgs& a, const Run& run, int64_t limit = kMaxOffset) {
  const auto rows = PoolAxis::of("max_pool2d_backward", a.shape, 0, a.gx.sizes[2], a.gy.sizes[2]);
  const auto columns = PoolAxis::of("max_pool2d_backward", a.shape, 1, a.gx.sizes[3], a.gy.sizes[3]);
  pooling::for_each_launch<kPackSize<T>>(
      pooling::make_loop(a.gx, a.positions, true, a.gy), {&a.gx, &a.gy, &a.positions}, limit,
      [&]<int V>(const PoolThreads<V>& threads, const int64_t* start) {
        run(MaxPool2dGrad<T, V>{a.gy.data<T>() + start[2], pooling::Positions::of(a.positions, start[1]),
                                a.gx.data<T>() + start[0], threads, rows, columns,
                                pooling::PlaneStrides::of(a.gy), pooling::PlaneStrides::of(a.positions)});
      });
}

template <class W, class Run>
void run_max_pool_pick(const MaxPoolPickArgs& a, const Run& run, int64_t limit = kMaxOffset) {
  const auto rows = PoolAxis::of("max_pool2d_pick", a.shape, 0, a.x.sizes[2], a.y.sizes[2]);
  const auto columns = PoolAxis::of("max_pool2d_pick", a.shape, 1, a.x.sizes[3], a.y.sizes[3]);
  pooling::for_each_launch<1>(
      pooling::make_loop(a.y, a.positions, false, a.x), {}, limit,
      [&](const PoolThreads<1>& threads, const int64_t* start) {
        run(MaxPool2dPick<W>{a.x.data<W>() + start[2], pooling::Positions::of(a.positions, start[1]),
                             a.y.data<W>() + start[0], threads, rows, columns,
                             pooling::PlaneStrides::of(a.x)});
      });
}

template <class Run>
void run_max_pool_indices(const MaxPoolIndexArgs& a, const Run& run, int64_t limit = kMaxOffset) {
  const auto rows = PoolAxis::of("max_pool2d_indices", a.shape, 0, a.height, a.indices.sizes[2]);
  const auto columns = PoolAxis::of("max_pool2d_indices", a.shape, 1, a.width, a.indices.sizes[3]);
  pooling::for_each_launch<1>(
      pooling::make_loop(a.indices, a.positions, false, a.indices), {}, limit,
      [&](const PoolThreads<1>& threads, const int64_t* start) {
        run(MaxPool2dIndices{pooling::Positions::of(a.positions, start[1]),
                             a.indices.data<int64_t>() + start[0], threads, rows, columns});
      });
}

}  // namespace gradus::kernels
