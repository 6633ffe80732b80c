// Element-wise kernels: y[i] = f(x0[i], x1[i], …) over broadcast, strided operands. An op gives a functor
//   struct Gelu { template <class T> GRADUS_HD T operator()(T x) const; };
// that computes in ComputeType<T>, or, where it needs the op's numbers, one whose bind<T>(args) returns such
// a functor. This file has the loops of cpu and sim; elementwise_block.cuh has the body that a GPU runs.
#pragma once
#include <gradus/base/dtype.h>
#include <gradus/base/parallel.h>
#include <gradus/base/scalar.h>
#include <gradus/runtime/stream.h>
#include <gradus/runtime/tensor_arg.h>

#include <algorithm>
#include <tuple>
#include <type_traits>

namespace gradus {

/// y = f(x); p and q are the op's numbers (a bound, a slope, an exponent).
struct UnaryArgs {
  TensorArg x, y;
  Scalar p, q;
  static constexpr auto operands = std::tuple{in(&UnaryArgs::x), out(&UnaryArgs::y)};
};

/// y = f(a, b), broadcast to y's sizes.
struct BinaryArgs {
  TensorArg a, b, y;
  Scalar p;
  static constexpr auto operands = std::tuple{in(&BinaryArgs::a), in(&BinaryArgs::b), out(&BinaryArgs::y)};
};

namespace elementwise {

/// The loop nest of an element-wise kernel after broadcasting and merging dimensions: sizes and the strides
/// of the output (operand 0) and the N inputs, innermost dimension last.
template <int N>
struct LoopNest {
  int ndim = 0;
  int64_t sizes[kMaxDims];
  int64_t strides[kMaxDims][N + 1];
};

// Stride of operand `x` along dimension d of an output with `ndim` dimensions; 0 where x is broadcast.
inline int64_t broadcast_stride(const TensorArg& x, int d, int ndim) {
  const int xd = d - (ndim - x.sizes.size());
  return xd < 0 || x.sizes[xd] == 1 ? 0 : x.strides[xd];
}

// Orders dimensions by the output's strides, drops those of size 1 and merges what is contiguous in all
// operands. Kept out of line, as is for_each_row: there are some hundred element-wise kernels.
template <int N>
[[gnu::noinline]] LoopNest<N> make_loop(const TensorArg& y, const TensorArg* const (&x)[N]) {
  LoopNest<N> nest;
  const int nd = y.sizes.size();
  int order[kMaxDims], n = 0;
  for (int d = 0; d < nd; ++d) {
    if (y.sizes[d] == 1) continue;
    int at = n++;
    for (; at > 0 && y.strides[order[at - 1]] < y.strides[d]; --at) order[at] = order[at - 1];
    order[at] = d;
  }
  for (int k = 0; k < n; ++k) {
    const int d = order[k];
    int64_t strides[N + 1];
    strides[0] = y.strides[d];
    for (int o = 0; o < N; ++o) strides[o + 1] = broadcast_stride(*x[o], d, nd);
    bool merge = nest.ndim > 0;
    for (int o = 0; merge && o <= N; ++o) merge = nest.strides[nest.ndim - 1][o] == strides[o] * y.sizes[d];
    if (merge) {
      nest.sizes[nest.ndim - 1] *= y.sizes[d];
    } else {
      nest.sizes[nest.ndim++] = y.sizes[d];
    }
    for (int o = 0; o <= N; ++o) nest.strides[nest.ndim - 1][o] = strides[o];
  }
  if (nest.ndim == 0) {  // one element
    nest.ndim = 1, nest.sizes[0] = 1;
    for (int o = 0; o <= N; ++o) nest.strides[0][o] = 1;
  }
  return nest;
}

template <class T>
inline constexpr bool kIsHalf = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

// The half types are computed in float, a piece of a row at a time: there is one arithmetic loop for the
// three types, and it is vector code, which loops with a conversion in them are not.
inline constexpr int64_t kPiece = 256;

template <class T>
[[gnu::noinline]] void widen(int64_t n, float* y, const T* x, int64_t sx) {
  if (sx == 1) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = x[i];
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i * sx];
  }
}
template <class T>
[[gnu::noinline]] void narrow(int64_t n, T* y, int64_t sy, const float* x) {
  if (sy == 1) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i].bits = T(x[i]).bits;
  } else {
    for (int64_t i = 0; i < n; ++i) y[i * sy].bits = T(x[i]).bits;
  }
}

// Calls row(m, y, stride of y, x...), with y and x... in float or as they are, for pieces of a row whose
// operands are of half type T.
template <class Y, class T, class Row, size_t N>
void run_pieces(int64_t n, Y* y, int64_t sy, const T* const (&x)[N], const int64_t (&sx)[N], const Row& row) {
  alignas(64) float wide[N][kPiece];
  for (int64_t i = 0; i < n; i += kPiece) {
    const int64_t m = std::min(kPiece, n - i);
    for (size_t k = 0; k < N; ++k) widen(m, wide[k], x[k] + i * sx[k], sx[k]);
    if constexpr (kIsHalf<Y>) {
      row(m, wide[0], 1, wide);
      narrow(m, y + i * sy, sy, wide[0]);
    } else {
      row(m, y + i * sy, sy, wide);
    }
  }
}

// The innermost loop. The first forms vectorise; a compiler cannot see that a stride variable is 1. Flat: a
// call left in the loop would keep it scalar.
template <class F, class Y, class X>
[[gnu::noinline, gnu::flatten]] void run_row(const F& f, int64_t n, Y* y, int64_t sy, const X* x,
                                             int64_t sx) {
  if constexpr (kIsHalf<X>) {
    run_pieces<Y, X>(n, y, sy, {x}, {sx},
                     [&](int64_t m, auto* to, int64_t st, const auto& w) { run_row(f, m, to, st, w[0], 1); });
  } else if (sy == 1 && sx == 1) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<Y>(f(x[i]));
  } else {
    for (int64_t i = 0; i < n; ++i) y[i * sy] = static_cast<Y>(f(x[i * sx]));
  }
}
template <class F, class Y, class X>
[[gnu::noinline, gnu::flatten]] void run_row(const F& f, int64_t n, Y* y, int64_t sy, const X* a, int64_t sa,
                                             const X* b, int64_t sb) {
  if constexpr (kIsHalf<X>) {
    run_pieces<Y, X>(n, y, sy, {a, b}, {sa, sb}, [&](int64_t m, auto* to, int64_t st, const auto& w) {
      run_row(f, m, to, st, w[0], 1, w[1], 1);
    });
  } else if (sy == 1 && sa == 1 && sb == 1) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<Y>(f(a[i], b[i]));
  } else if (sy == 1 && sa == 1 && sb == 0) {
    const X bv = *b;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<Y>(f(a[i], bv));
  } else {
    for (int64_t i = 0; i < n; ++i) y[i * sy] = static_cast<Y>(f(a[i * sa], b[i * sb]));
  }
}

// Elements a thread should have at least: below that, starting threads costs more than the loop.
inline constexpr int64_t kGrain = 32768;

// One kernel's loop over a row of n elements, given where each operand's row starts (in elements).
template <int N>
struct Row {
  void (*run)(const void* self, int64_t n, const int64_t* offsets);
  const void* self;
  void operator()(int64_t n, const int64_t* offsets) const { run(self, n, offsets); }
};

// Calls row for every innermost row, on several threads.
template <int N>
[[gnu::noinline]] void for_each_row(const LoopNest<N>& nest, Row<N> row) {
  const int inner = nest.ndim - 1;
  const int64_t n = nest.sizes[inner];
  if (inner == 0) {
    parallel_for(0, n, kGrain, [&](int64_t begin, int64_t end) {
      int64_t offsets[N + 1];
      for (int o = 0; o <= N; ++o) offsets[o] = begin * nest.strides[0][o];
      row(end - begin, offsets);
    });
    return;
  }
  int64_t rows = n == 0 ? 0 : 1;
  for (int d = 0; d < inner; ++d) rows *= nest.sizes[d];
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(n, 1));
  parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      int64_t offsets[N + 1] = {}, rest = r;
      for (int d = inner - 1; d >= 0; --d) {
        const int64_t i = rest % nest.sizes[d];
        rest /= nest.sizes[d];
        for (int o = 0; o <= N; ++o) offsets[o] += i * nest.strides[d][o];
      }
      row(n, offsets);
    }
  });
}

// Runs row(n, offsets, strides of the row) over the broadcast operands.
template <int N, class F>
void for_each_row(const TensorArg& y, const TensorArg* const (&x)[N], const F& row) {
  const LoopNest<N> nest = make_loop(y, x);
  auto call = [&](int64_t n, const int64_t* at) { row(n, at, nest.strides[nest.ndim - 1]); };
  using Call = decltype(call);
  for_each_row(nest, Row<N>{[](const void* self, int64_t n, const int64_t* at) {
                              (*static_cast<const Call*>(self))(n, at);
                            },
                            &call});
}

template <class Y, class X, class F>
void run_unary(const F& f, const TensorArg& y, const TensorArg& x) {
  for_each_row<1>(y, {&x}, [&](int64_t n, const int64_t* at, const int64_t* s) {
    run_row(f, n, y.data<Y>() + at[0], s[0], x.data<const X>() + at[1], s[1]);
  });
}
template <class Y, class X, class F>
void run_binary(const F& f, const TensorArg& y, const TensorArg& a, const TensorArg& b) {
  for_each_row<2>(y, {&a, &b}, [&](int64_t n, const int64_t* at, const int64_t* s) {
    run_row(f, n, y.data<Y>() + at[0], s[0], a.data<const X>() + at[1], s[1], b.data<const X>() + at[2],
            s[2]);
  });
}

// A functor with the op's numbers bound, for element type T.
template <class F, class T, class Args>
auto bind(const Args& args) {
  if constexpr (requires { F::template bind<ComputeType<T>>(args); }) {
    return F::template bind<ComputeType<T>>(args);
  } else {
    return F{};
  }
}

}  // namespace elementwise

// Host kernels for KernelTable::host<…>(): operands of type T, result of type T.
template <class F>
struct UnaryKernel {
  template <class T>
  static void run(const UnaryArgs& a, const Stream&) {
    elementwise::run_unary<T, T>(elementwise::bind<F, T>(a), a.y, a.x);
  }
};
template <class F>
struct BinaryKernel {
  template <class T>
  static void run(const BinaryArgs& a, const Stream&) {
    elementwise::run_binary<T, T>(elementwise::bind<F, T>(a), a.y, a.a, a.b);
  }
};
// The same with a bool result.
template <class F>
struct UnaryTestKernel {
  template <class T>
  static void run(const UnaryArgs& a, const Stream&) {
    elementwise::run_unary<bool, T>(elementwise::bind<F, T>(a), a.y, a.x);
  }
};
template <class F>
struct CompareKernel {
  template <class T>
  static void run(const BinaryArgs& a, const Stream&) {
    elementwise::run_binary<bool, T>(elementwise::bind<F, T>(a), a.y, a.a, a.b);
  }
};

}  // namespace gradus
