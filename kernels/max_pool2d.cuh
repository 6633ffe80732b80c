// 2-D max pooling: operands and host loops. It is our own on every device: vendor libraries lose NaN or the
// index (docs/adr/0004-max-pooling-positions.md).
#pragma once
#include <type_traits>
#include <vector>

#include "kernels/pool.cuh"

namespace gradus {

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

namespace pooling {

// Stores positions in the type that the tensor has.
template <class P>
void store_positions(const TensorArg& t, int64_t n, int64_t c, int64_t i, int64_t j, const int32_t* where,
                     int64_t lanes) {
  P* p = Plane<P>(t, n, c).at(i, j);
  for (int64_t q = 0; q < lanes; ++q) p[q] = static_cast<P>(where[q]);
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

}  // namespace pooling

struct MaxPoolKernel {
  template <class T>
  static void run(const MaxPoolArgs& a, const Stream&) {
    pooling::for_each_row(a.y, pooling::lanes_adjacent(a.x, a.y),
                          [&](int64_t n, int64_t c, int64_t lanes, int64_t i) { row<T>(a, n, c, lanes, i); });
  }

 private:
  template <class T>
  static void row(const MaxPoolArgs& a, int64_t n, int64_t c, int64_t lanes, int64_t i) {
    using C = ComputeType<T>;
    const int64_t height = a.x.sizes[2], width = a.x.sizes[3], oh = a.y.sizes[2], ow = a.y.sizes[3];
    const int64_t dh = a.shape.window.dilation[0], dw = a.shape.window.dilation[1];
    const pooling::Plane<const T> x(a.x, n, c);
    const pooling::Plane<T> y(a.y, n, c);
    const auto rows = a.shape.span(0, i, height, oh);
    for (int64_t j = 0; j < ow; ++j) {
      const auto columns = a.shape.span(1, j, width, ow);
      C best[pooling::kLanes];
      int32_t where[pooling::kLanes];
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
      (byte ? pooling::store_positions<uint8_t> : pooling::store_positions<int32_t>)(a.positions, n, c, i, j,
                                                                                     where, lanes);
    }
  }
};

struct MaxPoolGradKernel {
  template <class T>
  static void run(const MaxPoolGradArgs& a, const Stream&) {
    a.positions.dtype == DType::uint8 ? run_with<T, uint8_t>(a) : run_with<T, int32_t>(a);
  }

 private:
  template <class T, class P>
  static void run_with(const MaxPoolGradArgs& a) {
    pooling::for_each_row(
        a.gx, pooling::lanes_adjacent(a.gx, a.gy),
        [&](int64_t n, int64_t c, int64_t lanes, int64_t r) { row<T, P>(a, n, c, lanes, r); });
  }
  template <class T, class P>
  static void row(const MaxPoolGradArgs& a, int64_t n, int64_t c, int64_t lanes, int64_t r) {
    using C = ComputeType<T>;
    const int64_t height = a.gx.sizes[2], width = a.gx.sizes[3], oh = a.gy.sizes[2], ow = a.gy.sizes[3];
    const int64_t dw = a.shape.window.dilation[1];
    const pooling::Plane<const T> gy(a.gy, n, c);
    const pooling::Plane<const P> positions(a.positions, n, c);
    const pooling::Plane<T> gx(a.gx, n, c);
    // Half types are added up in a row of floats and rounded once, the others where they
    // belong.
    constexpr bool kInPlace = std::is_same_v<T, C>;
    thread_local std::vector<C> row_sums;
    if constexpr (!kInPlace) row_sums.resize(static_cast<size_t>(width * pooling::kLanes));
    const auto sums = [&](int64_t s) -> C* {
      if constexpr (kInPlace) {
        return gx.at(r, s);
      } else {
        return row_sums.data() + s * pooling::kLanes;
      }
    };
    for (int64_t s = 0; s < width; ++s)
      for (int64_t q = 0; q < lanes; ++q) sums(s)[q] = C(0);
    pooling::for_outputs_of_row(a.shape, r, height, oh, [&](int64_t i, int64_t k) {
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
        for (int64_t q = 0; q < lanes; ++q) gx.at(r, s)[q] = static_cast<T>(sums(s)[q]);
    }
  }
};

struct MaxPoolPickKernel {
  template <class T>
  static void run(const MaxPoolPickArgs& a, const Stream&) {
    pooling::for_each_row(a.y, false, [&](int64_t n, int64_t c, int64_t, int64_t i) { row<T>(a, n, c, i); });
  }

 private:
  template <class T>
  static void row(const MaxPoolPickArgs& a, int64_t n, int64_t c, int64_t i) {
    const int64_t height = a.x.sizes[2], width = a.x.sizes[3], oh = a.y.sizes[2], ow = a.y.sizes[3];
    const pooling::Plane<const T> x(a.x, n, c);
    const pooling::Plane<T> y(a.y, n, c);
    for (int64_t j = 0; j < ow; ++j) {
      const auto from =
          pooling::place(a.shape, i, j, pooling::position(a.positions, n, c, i, j), height, width, oh, ow);
      *y.at(i, j) = *x.at(from.row, from.column);
    }
  }
};

struct MaxPoolIndexKernel {
  static void run(const MaxPoolIndexArgs& a, const Stream&) {
    pooling::for_each_row(a.indices, false,
                          [&](int64_t n, int64_t c, int64_t, int64_t i) { row(a, n, c, i); });
  }

 private:
  static void row(const MaxPoolIndexArgs& a, int64_t n, int64_t c, int64_t i) {
    const int64_t oh = a.indices.sizes[2], ow = a.indices.sizes[3];
    const pooling::Plane<int64_t> indices(a.indices, n, c);
    for (int64_t j = 0; j < ow; ++j) {
      const auto at = pooling::place(a.shape, i, j, pooling::position(a.positions, n, c, i, j), a.height,
                                     a.width, oh, ow);
      *indices.at(i, j) = at.row * a.width + at.column;
    }
  }
};

void max_pool_indices_cuda(const MaxPoolIndexArgs& args, const Stream& stream);

}  // namespace gradus
