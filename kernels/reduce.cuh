// Reductions: the operations and the innermost loops of cpu and sim, on the loop nest of reduce_loops.cuh.
#pragma once
#include <gradus/base/math.h>

#include <limits>

#include "kernels/reduce_loops.cuh"

namespace gradus {
namespace reduction {

/// The fold of v(0) … v(n - 1), lane by lane; `none` if n is 0.
template <int Lanes, class Op, class C, class V>
C fold(int64_t n, C none, const V& v) {
  if (n < Lanes) {
    C total = n == 0 ? none : v(0);
    for (int64_t i = 1; i < n; ++i) total = Op::combine(total, v(i));
    return total;
  }
  C lane[Lanes];
#pragma omp simd
  for (int j = 0; j < Lanes; ++j) lane[j] = v(j);
  int64_t i = Lanes;
  for (; i + Lanes <= n; i += Lanes) {
#pragma omp simd
    for (int j = 0; j < Lanes; ++j) lane[j] = Op::combine(lane[j], v(i + j));
  }
  for (int j = 0; i + j < n; ++j) lane[j] = Op::combine(lane[j], v(i + j));
  for (int w = Lanes / 2; w > 0; w /= 2)
    for (int j = 0; j < w; ++j) lane[j] = Op::combine(lane[j], lane[j + w]);
  return lane[0];
}

// The folds of W neighbouring columns of n rows.
template <int W, class Op, class C, class T>
void fold_columns(const T* x, int64_t n, int64_t step, C* acc) {
  C lane[W];
#pragma omp simd
  for (int j = 0; j < W; ++j) lane[j] = Op::template map<C>(static_cast<C>(x[j]));
  for (int64_t r = 1; r < n; ++r) {
#pragma omp simd
    for (int j = 0; j < W; ++j)
      lane[j] = Op::combine(lane[j], Op::template map<C>(static_cast<C>(x[r * step + j])));
  }
  for (int j = 0; j < W; ++j) acc[j] = lane[j];
}

template <class Op, class T>
void leaf(const ReduceArgs& args, int64_t at, int64_t n, int64_t step, int64_t width, Accumulator<T>* acc) {
  using C = Accumulator<T>;
  const T* x = args.x.data<T>() + at;
  if (width == 1 && step == 1) {
    *acc = fold<kLanes, Op>(n, C{}, [x](int64_t i) { return Op::template map<C>(static_cast<C>(x[i])); });
    return;
  }
  int64_t c = 0;
  for (; c + 32 <= width; c += 32) fold_columns<32, Op>(x + c, n, step, acc + c);
  for (; c + 8 <= width; c += 8) fold_columns<8, Op>(x + c, n, step, acc + c);
  for (; c < width; ++c) fold_columns<1, Op>(x + c, n, step, acc + c);
}

template <class Op, class C>
void combine(C* a, const C* b, int64_t width) {
  for (int64_t c = 0; c < width; ++c) a[c] = Op::combine(a[c], b[c]);
}

template <class Op, class Y, class C>
void store(const ReduceArgs& args, int64_t at, int64_t step, int64_t width, const C* acc) {
  Y* y = args.y.data<Y>() + at;
  for (int64_t c = 0; c < width; ++c) y[c * step] = static_cast<Y>(Op::finish(acc[c], args.count));
}

// The operations, for every device. identity<T>() is the result of no elements; map() is applied to each
// element, finish() to the total of `count` elements.
struct Plain {
  template <class C>
  static GRADUS_HD C map(C x) {
    return x;
  }
  template <class C>
  static GRADUS_HD C finish(C total, int64_t) {
    return total;
  }
};
struct Add : Plain {
  static constexpr const char* kName = "sum";
  using Leaf = Add;
  template <class>
  static constexpr int identity() {
    return 0;
  }
  template <class C>
  static GRADUS_HD C combine(C a, C b) {
    return a + b;
  }
};
struct Mean : Add {
  static constexpr const char* kName = "mean";
  template <class C>
  static GRADUS_HD C finish(C total, int64_t count) {
    return total / static_cast<C>(count);
  }
};
struct Multiply : Plain {
  static constexpr const char* kName = "prod";
  using Leaf = Multiply;
  template <class>
  static constexpr int identity() {
    return 1;
  }
  template <class C>
  static GRADUS_HD C combine(C a, C b) {
    return a * b;
  }
};
/// sqrt(sum(x^2))
struct Euclidean : Add {
  static constexpr const char* kName = "norm";
  using Leaf = Euclidean;
  template <class C>
  static GRADUS_HD C map(C x) {
    return x * x;
  }
  template <class C>
  static GRADUS_HD C finish(C total, int64_t) {
    return math::sqrt(total);
  }
};
/// The larger; NaN if either is.
struct Max : Plain {
  static constexpr const char* kName = "amax";
  using Leaf = Max;
  template <class T>
  static constexpr T identity() {
    using Limits = std::numeric_limits<T>;
    return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  }
  template <class C>
  static GRADUS_HD C combine(C a, C b) {
    if constexpr (std::is_integral_v<C>)
      return a > b ? a : b;
    else
      return math::detail::select(a > b || a != a, a, b);
  }
};
/// The smaller; NaN if either is.
struct Min : Plain {
  static constexpr const char* kName = "amin";
  using Leaf = Min;
  template <class T>
  static constexpr T identity() {
    using Limits = std::numeric_limits<T>;
    return Limits::has_infinity ? Limits::infinity() : Limits::max();
  }
  template <class C>
  static GRADUS_HD C combine(C a, C b) {
    if constexpr (std::is_integral_v<C>)
      return a < b ? a : b;
    else
      return math::detail::select(a < b || a != a, a, b);
  }
};

/// The sum over n elements, given leaf(begin, end), which adds up at most kLeaf of them; on several threads.
template <class C, class F>
C pairwise_sum(int64_t n, const F& leaf) {
  if (n <= kLeaf) return leaf(0, n);
  static constexpr Kernel<C> kAdd{nullptr, &combine<Add, C>, nullptr, C{0}};
  constexpr int64_t kPart = 16 * kLeaf;
  const int64_t parts = (n + kPart - 1) / kPart;
  const std::unique_ptr<C[]> totals(new C[static_cast<size_t>(parts)]);
  parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      Cascade<C> cascade(kAdd, 1);
      for (int64_t i = p * kPart; i < std::min(n, (p + 1) * kPart); i += kLeaf) {
        const C total = leaf(i, std::min(n, i + kLeaf));
        cascade.push(&total);
      }
      totals[p] = *cascade.total();
    }
  });
  Cascade<C> cascade(kAdd, 1);
  for (int64_t p = 0; p < parts; ++p) cascade.push(&totals[p]);
  return *cascade.total();
}

}  // namespace reduction

/// Host kernel for KernelTable::host<…>(): elements of type T, result of type T.
template <class Op>
struct ReduceKernel {
  template <class T, class Y = T>
  static void run(const ReduceArgs& args, const Stream&) {
    using C = reduction::Accumulator<T>;
    using Id = std::conditional_t<std::is_integral_v<T>, T, C>;
    static constexpr reduction::Kernel<C> kernel{&reduction::leaf<typename Op::Leaf, T>,
                                                 &reduction::combine<Op, C>, &reduction::store<Op, Y, C>,
                                                 static_cast<C>(Op::template identity<Id>())};
    reduction::run(args, kernel);
  }
};
/// The same, with an int64 result for integers and bool.
template <class Op>
struct WideReduceKernel {
  template <class T>
  static void run(const ReduceArgs& args, const Stream& stream) {
    ReduceKernel<Op>::template run<T, std::conditional_t<std::is_integral_v<T>, int64_t, T>>(args, stream);
  }
};

}  // namespace gradus
