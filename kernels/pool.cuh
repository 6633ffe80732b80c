// 2-D pooling: operands, window arithmetic and the host loops. Max pooling is our own on every device: vendor
// libraries lose NaN or the index (docs/architecture.md).
#pragma once
#include <gradus/base/dtype.h>
#include <gradus/base/parallel.h>
#include <gradus/runtime/stream.h>

#include <tuple>
#include <type_traits>
#include <vector>

#include "kernels/conv.cuh"

namespace gradus {

/// How outputs map to inputs. Adaptive: output i sees inputs [floor(i S / O), ceil((i + 1) S / O)).
struct PoolShape {
  Window window;
  int64_t kernel[2];  // of adaptive pooling: the largest window
  bool adaptive;

  struct Span {
    int64_t start, count;
  };
  /// The inputs of output i along an axis; those below 0 or past the input are padding.
  GRADUS_HD Span span(int axis, int64_t i, int64_t size, int64_t outputs) const {
    if (!adaptive) return {i * window.stride[axis] - window.padding[axis], kernel[axis]};
    const int64_t start = i * size / outputs;
    return {start, ((i + 1) * size + outputs - 1) / outputs - start};
  }
};

/// y (N, C, OH, OW) and positions (same sizes, uint8 or int32: row * kernel[1] + column in the window) from x
/// (N, C, H, W). NaN wins, the last one of a window; among equals the first. A window of nothing but padding
/// cannot occur.
struct MaxPoolArgs {
  TensorArg x, y, positions;
  PoolShape shape;
  static constexpr auto operands =
      std::tuple{in(&MaxPoolArgs::x), out(&MaxPoolArgs::y), out(&MaxPoolArgs::positions)};
};
/// gx from gy: each output's gradient goes to its position.
struct MaxPoolGradArgs {
  TensorArg gy, positions, gx;
  PoolShape shape;
  static constexpr auto operands =
      std::tuple{in(&MaxPoolGradArgs::gy), in(&MaxPoolGradArgs::positions), out(&MaxPoolGradArgs::gx)};
};
/// y = x at each output's position: the derivative of MaxPoolGrad.
struct MaxPoolPickArgs {
  TensorArg x, positions, y;
  PoolShape shape;
  static constexpr auto operands =
      std::tuple{in(&MaxPoolPickArgs::x), in(&MaxPoolPickArgs::positions), out(&MaxPoolPickArgs::y)};
};
/// indices (int64): row * W + column in the input, as PyTorch's return_indices.
struct MaxPoolIndexArgs {
  TensorArg positions, indices;
  int64_t height, width;
  PoolShape shape;
  static constexpr auto operands =
      std::tuple{in(&MaxPoolIndexArgs::positions), out(&MaxPoolIndexArgs::indices)};
};

/// y = sum of the window / divisor.
struct AvgPoolArgs {
  TensorArg x, y;
  PoolShape shape;
  bool count_include_pad;
  int64_t divisor_override;  // 0: none
  static constexpr auto operands = std::tuple{in(&AvgPoolArgs::x), out(&AvgPoolArgs::y)};
};
struct AvgPoolGradArgs {
  TensorArg gy, gx;
  PoolShape shape;
  bool count_include_pad;
  int64_t divisor_override;
  static constexpr auto operands = std::tuple{in(&AvgPoolGradArgs::gy), out(&AvgPoolGradArgs::gx)};
};

namespace pooling {

/// Channels handled together. In channels-last memory they are neighbours, and the loops over them vectorise.
inline constexpr int64_t kLanes = 64;

// A tensor's plane (image n, channels from c): its elements are at(row, column)[lane * stride_c].
template <class T>
struct Plane {
  T* origin;
  int64_t sh, sw, sc;
  Plane(const TensorArg& t, int64_t n, int64_t c)
      : origin(t.data<T>() + n * t.strides[0] + c * t.strides[1]),
        sh(t.strides[2]),
        sw(t.strides[3]),
        sc(t.strides[1]) {}
  T* at(int64_t row, int64_t column) const { return origin + row * sh + column * sw; }
};

// Runs body(n, first channel, lanes, row) for every output (or input) row of `t`. Lanes is 1 unless channels
// are neighbours in memory.
template <class Body>
void for_each_row(const TensorArg& t, bool channels_last, const Body& body) {
  const int64_t step = channels_last ? kLanes : 1;
  const int64_t blocks = (t.sizes[1] + step - 1) / step, rows = t.sizes[2];
  const int64_t row_work = std::max<int64_t>(1, t.sizes[3] * step);
  parallel_for(0, t.sizes[0] * blocks * rows, std::max<int64_t>(1, 8192 / row_work),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t n = i / (blocks * rows), b = channels_last ? i % blocks : i / rows % blocks;
                   const int64_t row = channels_last ? i / blocks % rows : i % rows;
                   body(n, b * step, std::min(step, t.sizes[1] - b * step), row);
                 }
               });
}

inline bool lanes_adjacent(const TensorArg& a, const TensorArg& b) {
  return a.strides[1] == 1 && b.strides[1] == 1;
}

// Stores positions in the type that the tensor has.
template <class P>
void store_positions(const TensorArg& t, int64_t n, int64_t c, int64_t i, int64_t j, const int32_t* where,
                     int64_t lanes) {
  P* p = Plane<P>(t, n, c).at(i, j);
  for (int64_t q = 0; q < lanes; ++q) p[q] = static_cast<P>(where[q]);
}

template <class T>
void max_pool(const MaxPoolArgs& a) {
  using C = ComputeType<T>;
  const int64_t height = a.x.sizes[2], width = a.x.sizes[3], oh = a.y.sizes[2], ow = a.y.sizes[3];
  const int64_t dh = a.shape.window.dilation[0], dw = a.shape.window.dilation[1];
  for_each_row(a.y, lanes_adjacent(a.x, a.y), [&](int64_t n, int64_t c, int64_t lanes, int64_t i) {
    const Plane<const T> x(a.x, n, c);
    const Plane<T> y(a.y, n, c);
    const auto rows = a.shape.span(0, i, height, oh);
    for (int64_t j = 0; j < ow; ++j) {
      const auto columns = a.shape.span(1, j, width, ow);
      C best[kLanes];
      int32_t where[kLanes];
      bool first = true;
      for (int64_t k = 0; k < rows.count; ++k) {
        const int64_t r = rows.start + k * dh;
        if (r < 0 || r >= height) continue;
        for (int64_t l = 0; l < columns.count; ++l) {
          const int64_t s = columns.start + l * dw;
          if (s < 0 || s >= width) continue;
          const T* v = x.at(r, s);
          const auto here = static_cast<int32_t>(k * a.shape.kernel[1] + l);
          if (first) {
            for (int64_t q = 0; q < lanes; ++q) best[q] = static_cast<C>(v[q]), where[q] = here;
            first = false;
            continue;
          }
#pragma omp simd
          for (int64_t q = 0; q < lanes; ++q) {
            const C value = static_cast<C>(v[q]);
            const bool take = (value > best[q]) | (value != value);
            best[q] = take ? value : best[q];
            where[q] = take ? here : where[q];
          }
        }
      }
      T* out = y.at(i, j);
      for (int64_t q = 0; q < lanes; ++q) out[q] = static_cast<T>(best[q]);
      const bool byte = a.positions.dtype == DType::uint8;
      (byte ? store_positions<uint8_t> : store_positions<int32_t>)(a.positions, n, c, i, j, where, lanes);
    }
  });
}

// Outputs [first, last] whose windows may hold input index s along an axis.
struct Reach {
  int64_t first, last;
};
inline Reach reach(const PoolShape& shape, int axis, int64_t s, int64_t size, int64_t outputs) {
  if (shape.adaptive) {
    const int64_t first = s * outputs / size;
    return {std::max<int64_t>(0, first - 1), std::min(outputs - 1, ((s + 1) * outputs + size - 1) / size)};
  }
  const int64_t stride = shape.window.stride[axis], from = s + shape.window.padding[axis];
  const int64_t extent = (shape.kernel[axis] - 1) * shape.window.dilation[axis];
  return {std::max<int64_t>(0, (from - extent + stride - 1) / stride), std::min(outputs - 1, from / stride)};
}

// Adds into one input row, from the outputs that can have taken from it: a fixed order, and no two threads
// meet. add(outputs' row i, its window row k, row span) does the work for all columns.
template <class Add>
void for_outputs_of_row(const PoolShape& shape, int64_t row, int64_t height, int64_t outputs,
                        const Add& add) {
  const auto [first, last] = reach(shape, 0, row, height, outputs);
  for (int64_t i = first; i <= last; ++i) {
    const auto span = shape.span(0, i, height, outputs);
    const int64_t dilation = shape.window.dilation[0], away = row - span.start;
    if (away < 0 || away % dilation != 0 || away / dilation >= span.count) continue;
    add(i, away / dilation);
  }
}

template <class T, class P>
void max_pool_grad(const MaxPoolGradArgs& a) {
  using C = ComputeType<T>;
  const int64_t height = a.gx.sizes[2], width = a.gx.sizes[3], oh = a.gy.sizes[2], ow = a.gy.sizes[3];
  const int64_t dw = a.shape.window.dilation[1];
  for_each_row(a.gx, lanes_adjacent(a.gx, a.gy), [&](int64_t n, int64_t c, int64_t lanes, int64_t row) {
    const Plane<const T> gy(a.gy, n, c);
    const Plane<const P> positions(a.positions, n, c);
    const Plane<T> gx(a.gx, n, c);
    // Half types are added up in a row of floats and rounded once, the others where they belong.
    constexpr bool kInPlace = std::is_same_v<T, C>;
    thread_local std::vector<C> row_sums;
    if constexpr (!kInPlace) row_sums.resize(static_cast<size_t>(width * kLanes));
    const auto sums = [&](int64_t s) -> C* {
      if constexpr (kInPlace) {
        return gx.at(row, s);
      } else {
        return row_sums.data() + s * kLanes;
      }
    };
    for (int64_t s = 0; s < width; ++s)
      for (int64_t q = 0; q < lanes; ++q) sums(s)[q] = C(0);
    for_outputs_of_row(a.shape, row, height, oh, [&](int64_t i, int64_t k) {
      for (int64_t j = 0; j < ow; ++j) {
        const auto columns = a.shape.span(1, j, width, ow);
        const T* g = gy.at(i, j);
        const P* p = positions.at(i, j);
        for (int64_t l = 0; l < columns.count; ++l) {
          const int64_t s = columns.start + l * dw;
          if (s < 0 || s >= width) continue;
          C* to = sums(s);
          const auto here = static_cast<P>(k * a.shape.kernel[1] + l);
#pragma omp simd
          for (int64_t q = 0; q < lanes; ++q) to[q] += p[q] == here ? static_cast<C>(g[q]) : C(0);
        }
      }
    });
    if constexpr (!kInPlace) {
      for (int64_t s = 0; s < width; ++s)
        for (int64_t q = 0; q < lanes; ++q) gx.at(row, s)[q] = static_cast<T>(sums(s)[q]);
    }
  });
}

// Input row and column of output (i, j)'s position p.
struct Place {
  int64_t row, column;
};
inline Place place(const PoolShape& shape, int64_t i, int64_t j, int64_t p, int64_t height, int64_t width,
                   int64_t oh, int64_t ow) {
  return {shape.span(0, i, height, oh).start + p / shape.kernel[1] * shape.window.dilation[0],
          shape.span(1, j, width, ow).start + p % shape.kernel[1] * shape.window.dilation[1]};
}

// An element of positions, whichever of its two types it has.
inline int64_t position(const TensorArg& t, int64_t n, int64_t c, int64_t i, int64_t j) {
  const int64_t at = n * t.strides[0] + c * t.strides[1] + i * t.strides[2] + j * t.strides[3];
  return t.dtype == DType::uint8 ? t.data<uint8_t>()[at] : t.data<int32_t>()[at];
}

template <class T>
void max_pool_pick(const MaxPoolPickArgs& a) {
  const int64_t height = a.x.sizes[2], width = a.x.sizes[3], oh = a.y.sizes[2], ow = a.y.sizes[3];
  for_each_row(a.y, false, [&](int64_t n, int64_t c, int64_t, int64_t i) {
    const Plane<const T> x(a.x, n, c);
    const Plane<T> y(a.y, n, c);
    for (int64_t j = 0; j < ow; ++j) {
      const auto from = place(a.shape, i, j, position(a.positions, n, c, i, j), height, width, oh, ow);
      *y.at(i, j) = *x.at(from.row, from.column);
    }
  });
}

inline void max_pool_index(const MaxPoolIndexArgs& a, const Stream&) {
  const int64_t oh = a.indices.sizes[2], ow = a.indices.sizes[3];
  for_each_row(a.indices, false, [&](int64_t n, int64_t c, int64_t, int64_t i) {
    const Plane<int64_t> indices(a.indices, n, c);
    for (int64_t j = 0; j < ow; ++j) {
      const auto at = place(a.shape, i, j, position(a.positions, n, c, i, j), a.height, a.width, oh, ow);
      *indices.at(i, j) = at.row * a.width + at.column;
    }
  });
}

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

template <class T>
void avg_pool(const AvgPoolArgs& a) {
  using C = ComputeType<T>;
  const int64_t height = a.x.sizes[2], width = a.x.sizes[3], oh = a.y.sizes[2], ow = a.y.sizes[3];
  for_each_row(a.y, lanes_adjacent(a.x, a.y), [&](int64_t n, int64_t c, int64_t lanes, int64_t i) {
    const Plane<const T> x(a.x, n, c);
    const Plane<T> y(a.y, n, c);
    const auto rows = a.shape.span(0, i, height, oh);
    for (int64_t j = 0; j < ow; ++j) {
      const auto columns = a.shape.span(1, j, width, ow);
      C sum[kLanes] = {};
      for (int64_t r = std::max<int64_t>(0, rows.start); r < std::min(height, rows.start + rows.count); ++r)
        for (int64_t s = std::max<int64_t>(0, columns.start);
             s < std::min(width, columns.start + columns.count); ++s) {
          const T* v = x.at(r, s);
#pragma omp simd
          for (int64_t q = 0; q < lanes; ++q) sum[q] += static_cast<C>(v[q]);
        }
      const auto d = static_cast<C>(divisor(a, rows, columns, height, width));
      for (int64_t q = 0; q < lanes; ++q) y.at(i, j)[q] = static_cast<T>(sum[q] / d);
    }
  });
}

template <class T>
void avg_pool_grad(const AvgPoolGradArgs& a) {
  using C = ComputeType<T>;
  const int64_t height = a.gx.sizes[2], width = a.gx.sizes[3], oh = a.gy.sizes[2], ow = a.gy.sizes[3];
  for_each_row(a.gx, lanes_adjacent(a.gx, a.gy), [&](int64_t n, int64_t c, int64_t lanes, int64_t row) {
    const Plane<const T> gy(a.gy, n, c);
    const Plane<T> gx(a.gx, n, c);
    for (int64_t s = 0; s < width; ++s) {
      C sum[kLanes] = {};
      for_outputs_of_row(a.shape, row, height, oh, [&](int64_t i, int64_t) {
        const auto rows = a.shape.span(0, i, height, oh);
        const auto [first, last] = reach(a.shape, 1, s, width, ow);
        for (int64_t j = first; j <= last; ++j) {
          const auto columns = a.shape.span(1, j, width, ow);
          if (s < columns.start || s >= columns.start + columns.count) continue;
          const auto d = static_cast<C>(divisor(a, rows, columns, height, width));
          const T* g = gy.at(i, j);
#pragma omp simd
          for (int64_t q = 0; q < lanes; ++q) sum[q] += static_cast<C>(g[q]) / d;
        }
      });
      for (int64_t q = 0; q < lanes; ++q) gx.at(row, s)[q] = static_cast<T>(sum[q]);
    }
  });
}

}  // namespace pooling
}  // namespace gradus
