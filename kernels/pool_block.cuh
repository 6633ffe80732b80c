// What the poolings' bodies share: which inputs belong to which outputs, and who does what. A thread has V
// neighbouring channels of one place where channels are neighbours in memory (V = 1: anywhere), and threads
// follow one another as the result does in memory.
#pragma once
#include <algorithm>
#include <kernels/blocks/launch.cuh>
#include <kernels/blocks/nest.cuh>
#include <kernels/blocks/pack.cuh>

#include "kernels/pool.cuh"

namespace gradus::kernels {

/// PoolShape along one axis, without divisions. All numbers are below 2^29, so that sums of three and the
/// padded size stay below 2^31.
struct PoolAxis {
  static constexpr int64_t kLimit = int64_t{1} << 29;
  int size, outputs, kernel, padding, dilation;
  bool adaptive;
  Divisor stride, step;  // step: by the dilation

  /// Of a pooling from x to y. Throws E-NOT-IMPLEMENTED beyond the limit.
  static PoolAxis of(const char* op, const PoolShape& shape, int axis, int64_t size, int64_t outputs) {
    const Window& w = shape.window;
    const int64_t largest =
        std::max({size, outputs, shape.kernel[axis], w.stride[axis], w.padding[axis], w.dilation[axis]});
    GRADUS_CHECK(largest < kLimit, "E-NOT-IMPLEMENTED", op, ": not implemented on cuda for sides of ", kLimit,
                 " elements, got ", largest);
    return {static_cast<int>(size),
            static_cast<int>(outputs),
            static_cast<int>(shape.kernel[axis]),
            static_cast<int>(w.padding[axis]),
            static_cast<int>(w.dilation[axis]),
            shape.adaptive,
            Divisor(static_cast<uint32_t>(w.stride[axis])),
            Divisor(static_cast<uint32_t>(w.dilation[axis]))};
  }

  struct Span {
    int start, count;
  };
  /// As PoolShape::span().
  GRADUS_HD Span span(int output) const {
    if (!adaptive) return {output * static_cast<int>(stride.value()) - padding, kernel};
    const int64_t start = int64_t{output} * size / outputs;
    return {static_cast<int>(start),
            static_cast<int>((int64_t{output + 1} * size + outputs - 1) / outputs - start)};
  }
  /// Which place of the window `span` input s is; -1: none.
  GRADUS_HD int place(Span span, int s) const {
    const int away = s - span.start;
    if (away < 0) return -1;
    const auto k = static_cast<int>(step.divide(static_cast<uint32_t>(away)));
    return k * dilation == away && k < span.count ? k : -1;
  }
  /// Outputs first … last may have input s in their windows.
  struct Reach {
    int first, last;
  };
  GRADUS_HD Reach reach(int s) const {
    if (adaptive)
      return {static_cast<int>(int64_t{s} * outputs / size),
              static_cast<int>((int64_t{s + 1} * outputs + size - 1) / size) - 1};
    const int from = s + padding, over = from - (kernel - 1) * dilation;  // over > 0: windows end before s
    const auto by = static_cast<int>(stride.value());
    const int first = over <= 0 ? 0 : static_cast<int>(stride.divide(static_cast<uint32_t>(over + by - 1)));
    const auto last = static_cast<int>(stride.divide(static_cast<uint32_t>(from)));
    return {first, last < outputs ? last : outputs - 1};
  }
};

/// Elements of the result, V channels at a time. The nest's operands: the result, a second tensor of its
/// sizes or with its planes, the plane of the tensor that windows are in, the row and the column.
template <int V>
struct PoolThreads {
  Nest<5> nest;
  int first_row, first_column;

  struct Place {
    uint32_t result, second, plane;
    int row, column;
  };
  GRADUS_HD Place locate(int64_t i) const {
    uint32_t at[1][5];
    nest.locate({static_cast<uint32_t>(i)}, at);
    return {at[0][0], at[0][1], at[0][2], first_row + static_cast<int>(at[0][3]),
            first_column + static_cast<int>(at[0][4])};
  }
};

namespace pooling {

/// The strides of rows and columns of the tensor that windows are in.
struct PlaneStrides {
  int64_t row, column;
  static PlaneStrides of(const TensorArg& t) { return {t.strides[2], t.strides[3]}; }
  GRADUS_HD int64_t at(int r, int s) const { return r * row + s * column; }
};

/// Positions in windows, of one of two types.
struct Positions {
  void* address;
  bool bytes;  // uint8, else int32

  static Positions of(const TensorArg& t, int64_t start) {
    return {t.data<char>() + start * static_cast<int64_t>(element_size(t.dtype)), t.dtype == DType::uint8};
  }
  template <int V>
  GRADUS_HD void store(int64_t at, const int32_t (&where)[V]) const {
    if (bytes) {
      store_as<uint8_t>(at, where);
    } else {
      store_as<int32_t>(at, where);
    }
  }
  template <int V>
  GRADUS_HD void load(int64_t at, int32_t (&where)[V]) const {
    if (bytes) {
      load_as<uint8_t>(at, where);
    } else {
      load_as<int32_t>(at, where);
    }
  }

 private:
  template <class P, int V>
  GRADUS_HD void store_as(int64_t at, const int32_t (&where)[V]) const {
    Pack<P, V> v;
    GRADUS_UNROLL
    for (int q = 0; q < V; ++q) v.v[q] = static_cast<P>(where[q]);
    store_pack(static_cast<P*>(address) + at, v);
  }
  template <class P, int V>
  GRADUS_HD void load_as(int64_t at, int32_t (&where)[V]) const {
    const auto v = load_pack<V>(static_cast<const P*>(address) + at);
    GRADUS_UNROLL
    for (int q = 0; q < V; ++q) where[q] = v.v[q];
  }
};

// The loop of PoolThreads. `windowed` is the tensor that windows are in, `second` one of the result's sizes
// or, where `planes`, of the windowed one's.
using PoolLoop = elementwise::LoopNest<4>;
inline PoolLoop make_loop(const TensorArg& result, const TensorArg& second, bool planes,
                          const TensorArg& windowed) {
  TensorArg other = second, plane = windowed, row = result, column = result;
  plane.sizes = other.sizes = result.sizes;
  plane.strides = {windowed.strides[0], windowed.strides[1], 0, 0};
  if (planes) other.strides = {second.strides[0], second.strides[1], 0, 0};
  row.strides = {0, 0, 1, 0};
  column.strides = {0, 0, 0, 1};
  return elementwise::make_loop<4>(result, {&other, &plane, &row, &column});
}

// Can a thread have V channels? `wide`: the tensors that it reads or writes packs of.
inline bool has_packs(const PoolLoop& loop, int V, std::initializer_list<const TensorArg*> wide) {
  const auto& inner = loop.strides[loop.ndim - 1];
  if (inner[0] != 1 || inner[1] != 1 || inner[2] != 1 || inner[3] != 0 || inner[4] != 0) return false;
  if (loop.sizes[loop.ndim - 1] % V != 0) return false;
  return std::all_of(wide.begin(), wide.end(), [&](const TensorArg* t) {
    if (reinterpret_cast<uintptr_t>(t->address) % (static_cast<size_t>(V) * element_size(t->dtype)) != 0)
      return false;
    for (int d = 0; d < 4; ++d)
      if (d != 1 && t->sizes[d] != 1 && t->strides[d] % V != 0) return false;
    return true;
  });
}

template <int V>
PoolThreads<V> threads_of(PoolLoop loop, const int64_t* start) {
  const int inner = loop.ndim - 1;
  loop.sizes[inner] /= V;
  for (int64_t& stride : loop.strides[inner]) stride *= V;
  return {Nest<5>(loop), static_cast<int>(start[3]), static_cast<int>(start[4])};
}

// Calls launch(threads, start) for parts of the loop; start: where each operand of PoolThreads begins.
template <int V, class F>
void for_each_launch(const PoolLoop& whole, std::initializer_list<const TensorArg*> wide, int64_t limit,
                     const F& launch) {
  const bool packs = V > 1 && has_packs(whole, V, wide);
  for_each_part(whole, limit, [&](const PoolLoop& loop, const int64_t* start) {
    if (packs && loop.sizes[loop.ndim - 1] % V == 0 && start[0] % V == 0)
      launch(threads_of<V>(loop, start), start);
    else
      launch(threads_of<1>(loop, start), start);
  });
}

}  // namespace pooling
}  // namespace gradus::kernels
