// 2-D average pooling on blocks of threads; a thread for each place of the result.
#pragma once
#include <kernels/pool_block.cuh>

#include "kernels/avg_pool2d.cuh"

namespace gradus::kernels {

/// What a window's sum is divided by.
struct AvgPoolDivisor {
  bool count_include_pad;
  int64_t fixed;  // 0: the elements of the window

  GRADUS_HD int64_t of(const PoolAxis& rows, PoolAxis::Span over, const PoolAxis& columns,
                       PoolAxis::Span across) const {
    return fixed > 0 ? fixed : length(rows, over) * length(columns, across);
  }

 private:
  GRADUS_HD int64_t length(const PoolAxis& axis, PoolAxis::Span span) const {
    const int pad = count_include_pad ? axis.padding : 0, last = span.start + span.count;
    return (last < axis.size + pad ? last : axis.size + pad) - (span.start > -pad ? span.start : -pad);
  }
};

/// y = the sum of each window / divisor
template <class T, int V>
struct AvgPool2d {
  static constexpr const char* kName = "avg_pool2d";
  const T* x;
  T* y;
  PoolThreads<V> threads;
  PoolAxis rows, columns;
  pooling::PlaneStrides plane;
  AvgPoolDivisor divisor;

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
    C sum[V] = {};
    for (int r = over.start > 0 ? over.start : 0; r < over.start + over.count && r < rows.size; ++r) {
      for (int s = across.start > 0 ? across.start : 0; s < across.start + across.count && s < columns.size;
           ++s) {
        const auto v = load_pack<V>(x + at.plane + plane.at(r, s));
        GRADUS_UNROLL
        for (int q = 0; q < V; ++q) sum[q] += static_cast<C>(v.v[q]);
      }
    }
    const auto d = static_cast<C>(divisor.of(rows, over, columns, across));
    Pack<T, V> out;
    GRADUS_UNROLL
    for (int q = 0; q < V; ++q) out.v[q] = static_cast<T>(sum[q] / d);
    store_pack(y + at.result, out);
  }
};

/// gx from gy: a thread adds up what the windows that hold its place have for it, in the windows' order.
template <class T, int V>
struct AvgPool2dGrad {
  static constexpr const char* kName = "avg_pool2d_backward";
  const T* gy;
  T* gx;
  PoolThreads<V> threads;
  PoolAxis rows, columns;
  pooling::PlaneStrides plane;
  AvgPoolDivisor divisor;

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
      const auto over = rows.span(r);
      if (rows.place(over, at.row) < 0) continue;
      for (int s = right.first; s <= right.last; ++s) {
        const auto across = columns.span(s);
        if (columns.place(across, at.column) < 0) continue;
        const auto g = load_pack<V>(gy + at.plane + plane.at(r, s));
        const auto d = static_cast<C>(divisor.of(rows, over, columns, across));
        GRADUS_UNROLL
        for (int q = 0; q < V; ++q) sum[q] += static_cast<C>(g.v[q]) / d;
      }
    }
    Pack<T, V> out;
    GRADUS_UNROLL
    for (int q = 0; q < V; ++q) out.v[q] = static_cast<T>(sum[q]);
    store_pack(gx + at.result, out);
  }
};

// Each calls run(body) for the bodies that do it, of which there is more than one only where a tensor passes
// `limit` elements.

template <class T, class Run>
void run_avg_pool(const AvgPoolArgs& a, const Run& run, int64_t limit = kMaxOffset) {
  const auto rows = PoolAxis::of("avg_pool2d", a.shape, 0, a.x.sizes[2], a.y.sizes[2]);
  const auto columns = PoolAxis::of("avg_pool2d", a.shape, 1, a.x.sizes[3], a.y.sizes[3]);
  const AvgPoolDivisor divisor{a.count_include_pad, a.divisor_override};
  pooling::for_each_launch<kPackSize<T>>(
      pooling::make_loop(a.y, a.y, false, a.x), {&a.x, &a.y}, limit,
      [&]<int V>(const PoolThreads<V>& threads, const int64_t* start) {
        run(AvgPool2d<T, V>{a.x.data<T>() + start[2], a.y.data<T>() + start[0], threads, rows, columns,
                            pooling::PlaneStrides::of(a.x), divisor});
      });
}

template <class T, class Run>
void run_avg_pool_grad(const AvgPoolGradArgs& a, const Run& run, int64_t limit = kMaxOffset) {
  const auto rows = PoolAxis::of("avg_pool2d_backward", a.shape, 0, a.gx.sizes[2], a.gy.sizes[2]);
  const auto columns = PoolAxis::of("avg_pool2d_backward", a.shape, 1, a.gx.sizes[3], a.gy.sizes[3]);
  const AvgPoolDivisor divisor{a.count_include_pad, a.divisor_override};
  pooling::for_each_launch<kPackSize<T>>(
      pooling::make_loop(a.gx, a.gx, false, a.gy), {&a.gx, &a.gy}, limit,
      [&]<int V>(const PoolThreads<V>& threads, const int64_t* start) {
        run(AvgPool2dGrad<T, V>{a.gy.data<T>() + start[2], a.gx.data<T>() + start[0], threads, rows, columns,
                                pooling::PlaneStrides::of(a.gy), divisor});
      });
}

}  // namespace gradus::kernels
