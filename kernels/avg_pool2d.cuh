// 2-D average pooling: operands and host loops.
#pragma once
#include "kernels/pool.cuh"

namespace gradus {

/// y = sum of the window / divisor.
struct AvgPoolArgs {
  TensorArg x, y;
  PoolShape shape;
  bool count_include_pad;
  int64_t divisor_override;  // 0: none
  static constexpr auto operands = std::tuple{in(&AvgPoolArgs::x), out(&AvgPoolArgs::y)};
};
/// gx from gy: each output's gradient, divided, goes to all of its window.
struct AvgPoolGradArgs {
  TensorArg gy, gx;
  PoolShape shape;
  bool count_include_pad;
  int64_t divisor_override;
  static constexpr auto operands = std::tuple{in(&AvgPoolGradArgs::gy), out(&AvgPoolGradArgs::gx)};
};

namespace pooling {

// What a window's sum is divided by.
template <class Args>
int64_t divisor(const Args& a, PoolShape::Span rows, PoolShape::Span columns, int64_t height, int64_t width) {
  if (a.divisor_override > 0) return a.divisor_override;
  auto clipped = [&](PoolShape::Span s, int64_t size, int64_t padding) {
    return std::min(s.start + s.count, size + padding) - std::max(s.start, -padding);
  };
  const bool pads = a.count_include_pad;
  return clipped(rows, height, pads ? a.shape.window.padding[0] : 0) *
         clipped(columns, width, pads ? a.shape.window.padding[1] : 0);
}

}  // namespace pooling

struct AvgPoolKernel {
  template <class T>
  static void run(const AvgPoolArgs& a, const Stream&) {
    pooling::for_each_row(a.y, pooling::lanes_adjacent(a.x, a.y),
                          [&](int64_t n, int64_t c, int64_t lanes, int64_t i) { row<T>(a, n, c, lanes, i); });
  }

 private:
  template <class T>
  static void row(const AvgPoolArgs& a, int64_t n, int64_t c, int64_t lanes, int64_t i) {
    using C = ComputeType<T>;
    const int64_t height = a.x.sizes[2], width = a.x.sizes[3], oh = a.y.sizes[2], ow = a.y.sizes[3];
    const pooling::Plane<const T> x(a.x, n, c);
    const pooling::Plane<T> y(a.y, n, c);
    const auto rows = a.shape.span(0, i, height, oh);
    for (int64_t j = 0; j < ow; ++j) {
      const auto columns = a.shape.span(1, j, width, ow);
      C sum[pooling::kLanes] = {};
      for (int64_t r = std::max<int64_t>(0, rows.start); r < std::min(height, rows.start + rows.count); ++r)
        for (int64_t s = std::max<int64_t>(0, columns.start);
             s < std::min(width, columns.start + columns.count); ++s) {
          const T* v = x.at(r, s);
#pragma omp simd
          for (int64_t q = 0; q < lanes; ++q) sum[q] += static_cast<C>(v[q]);
        }
      const auto d = static_cast<C>(pooling::divisor(a, rows, columns, height, width));
      for (int64_t q = 0; q < lanes; ++q) y.at(i, j)[q] = static_cast<T>(sum[q] / d);
    }
  }
};

struct AvgPoolGradKernel {
  template <class T>
  static void run(const AvgPoolGradArgs& a, const Stream&) {
    pooling::for_each_row(a.gx, pooling::lanes_adjacent(a.gx, a.gy),
                          [&](int64_t n, int64_t c, int64_t lanes, int64_t r) { row<T>(a, n, c, lanes, r); });
  }

 private:
  template <class T>
  static void row(const AvgPoolGradArgs& a, int64_t n, int64_t c, int64_t lanes, int64_t r) {
    using C = ComputeType<T>;
    const int64_t height = a.gx.sizes[2], width = a.gx.sizes[3], oh = a.gy.sizes[2], ow = a.gy.sizes[3];
    const pooling::Plane<const T> gy(a.gy, n, c);
    const pooling::Plane<T> gx(a.gx, n, c);
    for (int64_t s = 0; s < width; ++s) {
      C sum[pooling::kLanes] = {};
      pooling::for_outputs_of_row(a.shape, r, height, oh, [&](int64_t i, int64_t) {
        const auto rows = a.shape.span(0, i, height, oh);
        const auto [first, last] = pooling::reach(a.shape, 1, s, width, ow);
        for (int64_t j = first; j <= last; ++j) {
          const auto columns = a.shape.span(1, j, width, ow);
          if (s < columns.start || s >= columns.start + columns.count) continue;
          const auto d = static_cast<C>(pooling::divisor(a, rows, columns, height, width));
          const T* g = gy.at(i, j);
#pragma omp simd
          for (int64_t q = 0; q < lanes; ++q) sum[q] += static_cast<C>(g[q]) / d;
        }
      });
      for (int64_t q = 0; q < lanes; ++q) gx.at(r, s)[q] = static_cast<T>(sum[q]);
    }
  }
};

}  // namespace gradus
