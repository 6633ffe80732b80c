// Reading and writing by index along one dimension of x. gather, scatter, index_select, x[tensor], embedding
// and their gradients are all one of these two:
//   pick   y[e] = x[walk(e) + index[e] * stride]
//   put    x[walk(e) + index[e] * stride] = (or +=) y[e]
// where e runs over y's elements, `index` broadcasts to y's sizes, and walk(e) adds up `walk`, x's stride
// along each dimension of y (0 along those that `index` stands for).
#pragma once
#include "kernels/copy.cuh"
#include "kernels/indexed.cuh"

namespace gradus {

/// What pick and put share. An index outside [0, size), or [-size, size) where negative ones count from the
/// end, throws E-INDEX before anything is written.
struct IndexedDim {
  Shape walk;
  int64_t size, stride;
  int dim;
  bool negative;
  const char* op;
};

struct PickArgs {
  TensorArg x, index, y;
  IndexedDim along;
  static constexpr auto operands = std::tuple{in(&PickArgs::x), in(&PickArgs::index), out(&PickArgs::y)};
};

/// Where an index occurs twice, the values are written or added in a fixed order.
struct PutArgs {
  TensorArg values, index, x;
  IndexedDim along;
  static constexpr auto operands = std::tuple{in(&PutArgs::values), in(&PutArgs::index), inout(&PutArgs::x)};
};

/// y = before * size + index: several index tensors as one. `before` may be absent.
struct LinearIndexArgs {
  TensorArg before, index, y;
  IndexedDim along;
  static constexpr auto operands =
      std::tuple{in(&LinearIndexArgs::before), in(&LinearIndexArgs::index), out(&LinearIndexArgs::y)};
};

namespace kernels {
namespace pick {

// What is wrong with an index. Values: the index, the dimension and its size.
inline std::string describe(const char* op, const int64_t* values) {
  return str(op, ": index ", values[0], " is out of bounds for dimension ", values[1], " with size ",
             values[2]);
}

inline void check_index(const TensorArg& index, const IndexedDim& along) {
  const int64_t low = along.negative ? -along.size : 0, numel = index.numel();
  const bool row_major = is_row_major(index);
  for (int64_t i = 0; i < numel; ++i) {
    const int64_t value = index.data<int64_t>()[row_major ? i : element_offset(index, i)];
    const int64_t values[] = {value, along.dim, along.size};
    GRADUS_CHECK(value >= low && value < along.size, "E-INDEX", describe(along.op, values));
  }
}

inline TensorArg walked(const TensorArg& x, const TensorArg& y, const IndexedDim& along) {
  TensorArg base = x;
  base.sizes = y.sizes;
  base.strides = along.walk;
  return base;
}

inline int64_t place(int64_t index, const IndexedDim& along) {
  return (index < 0 ? index + along.size : index) * along.stride;
}

// The part `task` of `tasks` of a nest, cut along a dimension of x in which the index does not vary, so that
// two threads never meet in one element. No such dimension: all is part 0.
inline bool cut(elementwise::LoopNest<2>& nest, int task, int tasks, int64_t* offsets) {
  int widest = -1;
  for (int d = 0; d < nest.ndim; ++d)
    if (nest.strides[d][1] != 0 && nest.strides[d][2] == 0 &&
        (widest < 0 || nest.sizes[d] > nest.sizes[widest]))
      widest = d;
  if (widest < 0) return task == 0;
  const int64_t n = nest.sizes[widest], begin = n * task / tasks, end = n * (task + 1) / tasks;
  for (int o = 0; o < 3; ++o) offsets[o] = begin * nest.strides[widest][o];
  nest.sizes[widest] = end - begin;
  return end > begin;
}

// row(n, offsets, strides) for all rows of the nest, in order.
template <class F>
void for_each_row_in_order(const elementwise::LoopNest<2>& nest, const int64_t* start, const F& row) {
  const int inner = nest.ndim - 1;
  int64_t rows = 1;
  for (int d = 0; d < inner; ++d) rows *= nest.sizes[d];
  for (int64_t r = 0; r < rows; ++r) {
    int64_t offsets[3] = {start[0], start[1], start[2]}, rest = r;
    for (int d = inner - 1; d >= 0; --d) {
      for (int o = 0; o < 3; ++o) offsets[o] += rest % nest.sizes[d] * nest.strides[d][o];
      rest /= nest.sizes[d];
    }
    row(nest.sizes[inner], offsets, nest.strides[inner]);
  }
}

// Calls move(n, x, x's stride, values, their stride) for runs along which the index stays the same.
template <class W, class F>
void put(const PutArgs& args, const F& move) {
  const TensorArg base = walked(args.x, args.values, args.along);
  const elementwise::LoopNest<2> whole = elementwise::make_loop<2>(args.values, {&base, &args.index});
  const int tasks = args.values.numel() > elementwise::kGrain ? get_num_threads() : 1;
  parallel_for(0, tasks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      elementwise::LoopNest<2> nest = whole;
      int64_t start[3] = {};
      if (!cut(nest, static_cast<int>(task), tasks, start)) continue;
      for_each_row_in_order(nest, start, [&](int64_t n, const int64_t* at, const int64_t* s) {
        const int64_t* index = args.index.data<int64_t>() + at[2];
        const int64_t run = s[2] == 0 ? n : 1;
        for (int64_t i = 0; i < n; i += run)
          move(run, args.x.data<W>() + at[1] + i * s[1] + place(index[i * s[2]], args.along), s[1],
               args.values.data<W>() + at[0] + i * s[0], s[0]);
      });
    }
  });
}

}  // namespace pick

inline void pick_host(const PickArgs& args, const Stream&) {
  pick::check_index(args.index, args.along);
  const TensorArg base = pick::walked(args.x, args.y, args.along);
  copy::visit_size(element_size(args.y.dtype), [&]<class W>(W) {
    elementwise::for_each_row<2>(
        args.y, {&base, &args.index}, [&](int64_t n, const int64_t* at, const int64_t* s) {
          W* y = args.y.data<W>() + at[0];
          const W* x = args.x.data<W>() + at[1];
          const int64_t* index = args.index.data<int64_t>() + at[2];
          if (s[2] == 0) return copy::move_row(n, y, s[0], x + pick::place(*index, args.along), s[1]);
          for (int64_t i = 0; i < n; ++i)
            y[i * s[0]] = x[i * s[1] + pick::place(index[i * s[2]], args.along)];
        });
  });
}

void pick_cuda(const PickArgs& args, const Stream& stream);

inline void put_host(const PutArgs& args, const Stream&) {
  pick::check_index(args.index, args.along);
  copy::visit_size(element_size(args.x.dtype), [&]<class W>(W) { pick::put<W>(args, &copy::move_row<W>); });
}

void put_cuda(const PutArgs& args, const Stream& stream);

struct PutAddKernel {
  template <class T>
  static void run(const PutArgs& args, const Stream&) {
    pick::check_index(args.index, args.along);
    pick::put<T>(args, [](int64_t n, T* x, int64_t sx, const T* v, int64_t sv) {
      using C = ComputeType<T>;
      for (int64_t i = 0; i < n; ++i)
        x[i * sx] = static_cast<T>(static_cast<C>(static_cast<C>(x[i * sx]) + static_cast<C>(v[i * sv])));
    });
  }
};

inline void linear_index_host(const LinearIndexArgs& args, const Stream&) {
  pick::check_index(args.index, args.along);
  const TensorArg& before = args.before.present() ? args.before : args.index;
  const int64_t scale = args.before.present() ? args.along.size : 0, size = args.along.size;
  auto combine = [=](int64_t b, int64_t i) { return b * scale + (i < 0 ? i + size : i); };
  elementwise::run_binary<int64_t, int64_t>(combine, args.y, before, args.index);
}
void linear_index_cuda(const LinearIndexArgs& args, const Stream& stream);

}  // namespace kernels
}  // namespace gradus
