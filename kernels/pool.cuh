// What the poolings share: how outputs map to inputs, and the host loops' order.
#pragma once
#include <gradus/base/dtype.h>
#include <gradus/base/parallel.h>
#include <gradus/runtime/stream.h>

#include <tuple>

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

}  // namespace pooling
}  // namespace gradus
