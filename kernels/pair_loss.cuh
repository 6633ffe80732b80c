// Losses that compare input and target element by element: the host loops of cpu and sim. Value and mean or
// sum are one kernel, the gradient another. Functors, for every device, give value and slope (the derivative
// by x).
#pragma once
#include "kernels/reduce.cuh"

namespace gradus {

/// y = sum of f(x, t) / divisor, or with `each` y[i] = f(x[i], t[i]). x, t (and y) are dense with one order;
/// p is the loss's number.
struct PairLossArgs {
  TensorArg x, t, y;
  double p;
  int64_t divisor;
  bool each;
  static constexpr auto operands =
      std::tuple{in(&PairLossArgs::x), in(&PairLossArgs::t), out(&PairLossArgs::y)};
};

/// dx = dy f'(x, t) / divisor; dy has one element, or with `each` as many as x.
struct PairLossBackwardArgs {
  TensorArg x, t, dy, dx;
  double p;
  int64_t divisor;
  bool each;
  static constexpr auto operands = std::tuple{in(&PairLossBackwardArgs::x), in(&PairLossBackwardArgs::t),
                                              in(&PairLossBackwardArgs::dy), out(&PairLossBackwardArgs::dx)};
};

namespace losses {

using math::detail::select;

template <class C>
GRADUS_HD C absolute(C x) {
  return select(x < 0, -x, x);
}
template <class C>
GRADUS_HD C sign(C x) {
  return static_cast<C>(x > 0) - static_cast<C>(x < 0);
}

struct Squared {
  static constexpr const char* kName = "mse_loss";
  template <class C>
  static GRADUS_HD C value(C x, C t, C) {
    return (x - t) * (x - t);
  }
  template <class C>
  static GRADUS_HD C slope(C x, C t, C) {
    return 2 * (x - t);
  }
};
struct Absolute {
  static constexpr const char* kName = "l1_loss";
  template <class C>
  static GRADUS_HD C value(C x, C t, C) {
    return absolute(x - t);
  }
  template <class C>
  static GRADUS_HD C slope(C x, C t, C) {
    return sign(x - t);
  }
};
/// Squared / 2 up to a distance of delta, beyond it linear.
struct Huber {
  static constexpr const char* kName = "huber_loss";
  template <class C>
  static GRADUS_HD C value(C x, C t, C delta) {
    const C d = absolute(x - t);
    return select(d <= delta, d * d / 2, delta * (d - delta / 2));
  }
  template <class C>
  static GRADUS_HD C slope(C x, C t, C delta) {
    const C d = x - t;
    return select(absolute(d) <= delta, d, delta * sign(d));
  }
};
/// Huber / beta.
struct SmoothL1 {
  static constexpr const char* kName = "smooth_l1_loss";
  template <class C>
  static GRADUS_HD C value(C x, C t, C beta) {
    const C d = absolute(x - t);
    return select(d < beta, d * d / (2 * beta), d - beta / 2);
  }
  template <class C>
  static GRADUS_HD C slope(C x, C t, C beta) {
    const C d = x - t;
    return select(absolute(d) < beta, d / beta, sign(d));
  }
};
/// -log(p) for target 1, -log(1 - p) for 0, in between for others; p = sigmoid(x).
struct BinaryLogits {
  static constexpr const char* kName = "binary_cross_entropy_with_logits";
  template <class C>
  static GRADUS_HD C value(C x, C t, C) {
    return select(x < 0, C{0}, x) - x * t + math::log1p(math::exp(-absolute(x)));
  }
  template <class C>
  static GRADUS_HD C slope(C x, C t, C) {
    return math::sigmoid(x) - t;
  }
};
/// The same of a probability; logarithms are cut at -100, as in PyTorch.
struct Binary {
  static constexpr const char* kName = "binary_cross_entropy";
  template <class C>
  static GRADUS_HD C cut(C log) {
    return select(log < -100, C{-100}, log);
  }
  template <class C>
  static GRADUS_HD C value(C x, C t, C) {
    return (t - 1) * cut(math::log(1 - x)) - t * cut(math::log(x));
  }
  template <class C>
  static GRADUS_HD C slope(C x, C t, C) {
    const C product = (1 - x) * x, least = static_cast<C>(1e-12);
    return (x - t) / select(product < least, least, product);
  }
};

}  // namespace losses

template <class F>
struct PairLossKernel {
  template <class T>
  static void run(const PairLossArgs& a, const Stream&) {
    using C = ComputeType<T>;
    const T *x = a.x.data<T>(), *t = a.t.data<T>();
    T* y = a.y.data<T>();
    const C p = static_cast<C>(a.p);
    auto value = [&](int64_t i) { return F::value(static_cast<C>(x[i]), static_cast<C>(t[i]), p); };
    if (a.each) {
      parallel_for(0, a.x.numel(), 32768, [&](int64_t begin, int64_t end) {
#pragma omp simd
        for (int64_t i = begin; i < end; ++i) y[i] = static_cast<T>(value(i));
      });
      return;
    }
    const C total = reduction::pairwise_sum<C>(a.x.numel(), [&](int64_t begin, int64_t end) {
      return reduction::fold<reduction::kLanes, reduction::Add>(end - begin, C{0},
                                                                [&](int64_t i) { return value(begin + i); });
    });
    *y = static_cast<T>(total / static_cast<C>(a.divisor));
  }
};

template <class F>
struct PairLossBackwardKernel {
  template <class T>
  static void run(const PairLossBackwardArgs& a, const Stream&) {
    using C = ComputeType<T>;
    const T *x = a.x.data<T>(), *t = a.t.data<T>(), *dy = a.dy.data<T>();
    T* dx = a.dx.data<T>();
    const C p = static_cast<C>(a.p), divisor = static_cast<C>(a.divisor);
    parallel_for(0, a.x.numel(), 32768, [&](int64_t begin, int64_t end) {
      if (a.each) {
#pragma omp simd
        for (int64_t i = begin; i < end; ++i)
          dx[i] =
              static_cast<T>(static_cast<C>(dy[i]) * F::slope(static_cast<C>(x[i]), static_cast<C>(t[i]), p));
      } else {
        const C g = static_cast<C>(*dy) / divisor;
#pragma omp simd
        for (int64_t i = begin; i < end; ++i)
          dx[i] = static_cast<T>(g * F::slope(static_cast<C>(x[i]), static_cast<C>(t[i]), p));
      }
    });
  }
};

}  // namespace gradus
