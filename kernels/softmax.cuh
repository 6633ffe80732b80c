// softmax and log_softmax: the host loops of cpu and sim. The orders of the additions are fixed; see
// reduce.cuh.
#pragma once
#include "kernels/reduce.cuh"

namespace gradus {

/// y = softmax(x) or log_softmax(x) along the middle of [outer, n, inner]; all contiguous.
struct SoftmaxArgs {
  TensorArg x, y;
  int64_t n, inner;
  static constexpr auto operands = std::tuple{in(&SoftmaxArgs::x), out(&SoftmaxArgs::y)};
};

/// dx from y and its gradient dy.
struct SoftmaxBackwardArgs {
  TensorArg y, dy, dx;
  int64_t n, inner;
  static constexpr auto operands =
      std::tuple{in(&SoftmaxBackwardArgs::y), in(&SoftmaxBackwardArgs::dy), out(&SoftmaxBackwardArgs::dx)};
};

namespace rows {

inline constexpr int kLanes = 16;
inline constexpr int64_t kGrain = 8192;  // elements a thread should have at least; each costs an exp or two

/// Calls f(W, offset) for each row or group of W neighbouring rows of [outer, n, inner], several threads at a
/// time. Rows that interleave (inner > 1) are done W at a time, so that the loops over W become vector code.
template <class F>
void for_each_group(int64_t outer, int64_t n, int64_t inner, const F& f) {
  const int64_t groups = (inner + kLanes - 1) / kLanes;
  const int64_t grain =
      std::max<int64_t>(1, kGrain / std::max<int64_t>(1, n * std::min<int64_t>(inner, kLanes)));
  parallel_for(0, outer * groups, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t column = i % groups * kLanes, offset = i / groups * n * inner + column;
      if (column + kLanes <= inner) {
        f(std::integral_constant<int, kLanes>{}, offset);
      } else {
        for (int64_t c = column; c < inner; ++c) f(std::integral_constant<int, 1>{}, offset + c - column);
      }
    }
  });
}

/// The largest of x[0 … n), n >= 1; NaN if any is.
template <class T>
ComputeType<T> largest(const T* x, int64_t n) {
  using C = ComputeType<T>;
  return reduction::fold<kLanes, reduction::Max>(n, -std::numeric_limits<C>::infinity(),
                                                 [&](int64_t i) { return static_cast<C>(x[i]); });
}

/// The last n % kLanes elements of a row as a whole vector, the missing ones copies of the last: an exp of 16
/// costs no more than one of a single number.
template <class T>
void load_rest(const T* x, int64_t n, ComputeType<T>* lane) {
  const int64_t whole = n - n % kLanes;
  for (int j = 0; j < kLanes; ++j) lane[j] = static_cast<ComputeType<T>>(x[std::min(whole + j, n - 1)]);
}

/// The sum of exp(x[i] - m).
template <class T>
ComputeType<T> sum_exp(const T* x, int64_t n, ComputeType<T> m) {
  using C = ComputeType<T>;
  C lane[kLanes] = {}, last[kLanes];
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
#pragma omp simd
    for (int j = 0; j < kLanes; ++j) lane[j] += math::exp(static_cast<C>(x[i + j]) - m);
  }
  if (i < n) {
    load_rest(x, n, last);
#pragma omp simd
    for (int j = 0; j < kLanes; ++j) last[j] = math::exp(last[j] - m);
    for (int j = 0; i + j < n; ++j) lane[j] += last[j];
  }
  for (int w = kLanes / 2; w > 0; w /= 2)
    for (int j = 0; j < w; ++j) lane[j] += lane[j + w];
  return lane[0];
}

/// The maxima m and the sums of exp(x - m) of `count` rows, one after the other in x; s may be written up to
/// kLanes. Short rows, of at most kLanes elements, are done side by side: each alone would leave vectors half
/// empty. The additions are sum_exp's.
template <class T, class C>
void max_and_sum_exp(const T* x, int64_t count, int64_t n, C* m, C* s) {
  if (n > kLanes) {
    for (int64_t r = 0; r < count; ++r) s[r] = sum_exp(x + r * n, n, m[r] = largest(x + r * n, n));
    return;
  }
  C v[kLanes][kLanes] = {}, top[kLanes];  // [element][row]
  for (int64_t k = 0; k < n; ++k)
    for (int r = 0; r < kLanes; ++r) v[k][r] = static_cast<C>(x[std::min<int64_t>(r, count - 1) * n + k]);
  std::copy_n(v[0], kLanes, top);
  for (int64_t k = 1; k < n; ++k) {
#pragma omp simd
    for (int r = 0; r < kLanes; ++r) top[r] = reduction::Max::combine(top[r], v[k][r]);
  }
  for (int64_t k = 0; k < n; ++k) {
#pragma omp simd
    for (int r = 0; r < kLanes; ++r) v[k][r] = math::exp(v[k][r] - top[r]);
  }
  for (int w = kLanes / 2; w > 0; w /= 2) {
    for (int k = 0; k < w; ++k)
#pragma omp simd
      for (int r = 0; r < kLanes; ++r) v[k][r] += v[k + w][r];
  }
  std::copy_n(top, count, m);
  std::copy_n(v[0], kLanes, s);
}

/// y[i] = f(x[i])
template <class T, class F>
void map(const T* x, T* y, int64_t n, const F& f) {
  using C = ComputeType<T>;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
#pragma omp simd
    for (int j = 0; j < kLanes; ++j) y[i + j] = static_cast<T>(f(static_cast<C>(x[i + j])));
  }
  if (i == n) return;
  C last[kLanes];
  load_rest(x, n, last);
#pragma omp simd
  for (int j = 0; j < kLanes; ++j) last[j] = f(last[j]);
  for (int j = 0; i + j < n; ++j) y[i + j] = static_cast<T>(last[j]);
}

// One row of neighbours.
template <bool Log, class T>
void softmax(const T* x, T* y, int64_t n) {
  using C = ComputeType<T>;
  const C m = largest(x, n), s = sum_exp(x, n, m), log_s = Log ? math::log(s) : C{0};
  map(x, y, n, [=](C v) { return Log ? (v - m) - log_s : math::exp(v - m) / s; });
}

// W rows that interleave at distance `step`.
template <bool Log, int W, class T>
void softmax(const T* x, T* y, int64_t n, int64_t step) {
  using C = ComputeType<T>;
  C m[W], s[W] = {}, log_s[W] = {};
  for (int j = 0; j < W; ++j) m[j] = static_cast<C>(x[j]);
  for (int64_t i = 1; i < n; ++i) {
#pragma omp simd
    for (int j = 0; j < W; ++j) m[j] = reduction::Max::combine(m[j], static_cast<C>(x[i * step + j]));
  }
  for (int64_t i = 0; i < n; ++i) {
#pragma omp simd
    for (int j = 0; j < W; ++j) s[j] += math::exp(static_cast<C>(x[i * step + j]) - m[j]);
  }
  if constexpr (Log)
    for (int j = 0; j < W; ++j) log_s[j] = math::log(s[j]);
  for (int64_t i = 0; i < n; ++i) {
#pragma omp simd
    for (int j = 0; j < W; ++j) {
      const C shifted = static_cast<C>(x[i * step + j]) - m[j];
      y[i * step + j] = static_cast<T>(Log ? shifted - log_s[j] : math::exp(shifted) / s[j]);
    }
  }
}

// dx = y (dy - sum(y dy)), or with Log dx = dy - exp(y) sum(dy).
template <bool Log, class C>
C gradient(C y, C dy, C s) {
  return Log ? dy - math::exp(y) * s : y * (dy - s);
}
template <bool Log, class T>
void softmax_backward(const T* y, const T* dy, T* dx, int64_t n) {
  using C = ComputeType<T>;
  const C s = reduction::fold<kLanes, reduction::Add>(n, C{0}, [&](int64_t i) {
    return Log ? static_cast<C>(dy[i]) : static_cast<C>(dy[i]) * static_cast<C>(y[i]);
  });
#pragma omp simd
  for (int64_t i = 0; i < n; ++i)
    dx[i] = static_cast<T>(gradient<Log>(static_cast<C>(y[i]), static_cast<C>(dy[i]), s));
}
template <bool Log, int W, class T>
void softmax_backward(const T* y, const T* dy, T* dx, int64_t n, int64_t step) {
  using C = ComputeType<T>;
  C s[W] = {};
  for (int64_t i = 0; i < n; ++i) {
#pragma omp simd
    for (int j = 0; j < W; ++j) {
      const C g = static_cast<C>(dy[i * step + j]);
      s[j] += Log ? g : g * static_cast<C>(y[i * step + j]);
    }
  }
  for (int64_t i = 0; i < n; ++i) {
#pragma omp simd
    for (int j = 0; j < W; ++j) {
      const int64_t k = i * step + j;
      dx[k] = static_cast<T>(gradient<Log>(static_cast<C>(y[k]), static_cast<C>(dy[k]), s[j]));
    }
  }
}

}  // namespace rows

template <bool Log>
struct SoftmaxKernel {
  template <class T>
  static void run(const SoftmaxArgs& a, const Stream&) {
    if (a.x.numel() == 0) return;
    rows::for_each_group(a.x.numel() / (a.n * a.inner), a.n, a.inner, [&](auto width, int64_t at) {
      const T* x = a.x.data<T>() + at;
      T* y = a.y.data<T>() + at;
      if (a.inner == 1) return rows::softmax<Log>(x, y, a.n);
      rows::softmax<Log, width()>(x, y, a.n, a.inner);
    });
  }
};

template <bool Log>
struct SoftmaxBackwardKernel {
  template <class T>
  static void run(const SoftmaxBackwardArgs& a, const Stream&) {
    if (a.y.numel() == 0) return;
    rows::for_each_group(a.y.numel() / (a.n * a.inner), a.n, a.inner, [&](auto width, int64_t at) {
      const T *y = a.y.data<T>() + at, *dy = a.dy.data<T>() + at;
      T* dx = a.dx.data<T>() + at;
      if (a.inner == 1) return rows::softmax_backward<Log>(y, dy, dx, a.n);
      rows::softmax_backward<Log, width()>(y, dy, dx, a.n, a.inner);
    });
  }
};

}  // namespace gradus
