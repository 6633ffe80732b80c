// Layer norm over rows: the host loops of cpu and sim.
#pragma once
#include "kernels/reduce.cuh"

namespace gradus {

/// y = (x - mean) * rstd * weight + bias. x, y: [rows, cols]; weight, bias: [cols], may be absent; mean,
/// rstd: [rows] in the compute type, kept for the gradient.
struct LayerNormArgs {
  TensorArg x, weight, bias, y, mean, rstd;
  int64_t rows, cols;
  double eps;
  static constexpr auto operands =
      std::tuple{in(&LayerNormArgs::x),  in(&LayerNormArgs::weight), in(&LayerNormArgs::bias),
                 out(&LayerNormArgs::y), out(&LayerNormArgs::mean),  out(&LayerNormArgs::rstd)};
};

/// The gradients that are present: dx of x, d_weight and d_bias of weight and bias.
struct LayerNormBackwardArgs {
  TensorArg x, weight, dy, mean, rstd, dx, d_weight, d_bias;
  int64_t rows, cols;
  static constexpr auto operands =
      std::tuple{in(&LayerNormBackwardArgs::x),         in(&LayerNormBackwardArgs::weight),
                 in(&LayerNormBackwardArgs::dy),        in(&LayerNormBackwardArgs::mean),
                 in(&LayerNormBackwardArgs::rstd),      out(&LayerNormBackwardArgs::dx),
                 out(&LayerNormBackwardArgs::d_weight), out(&LayerNormBackwardArgs::d_bias)};
};

namespace norm_rows {

inline constexpr int64_t kGrain = 32768;

template <class C, class V>
C sum(int64_t n, const V& v) {
  return reduction::fold<reduction::kLanes, reduction::Add>(n, C{0}, v);
}

template <class T>
const T* optional(const TensorArg& arg) {
  return arg.present() ? arg.data<T>() : nullptr;
}

}  // namespace norm_rows

struct LayerNormKernel {
  template <class T>
  static void run(const LayerNormArgs& a, const Stream&) {
    const int64_t grain = std::max<int64_t>(1, norm_rows::kGrain / std::max<int64_t>(a.cols, 1));
    parallel_for(0, a.rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) row<T>(a, r);
    });
  }

 private:
  template <class T>
  static void row(const LayerNormArgs& a, int64_t r) {
    using C = ComputeType<T>;
    const T *x = a.x.data<T>() + r * a.cols, *w = norm_rows::optional<T>(a.weight),
            *b = norm_rows::optional<T>(a.bias);
    T* y = a.y.data<T>() + r * a.cols;
    auto at = [x](int64_t i) { return static_cast<C>(x[i]); };
    const C cols = static_cast<C>(a.cols), mean = norm_rows::sum<C>(a.cols, at) / cols;
    const C squares = norm_rows::sum<C>(a.cols, [&](int64_t i) { return (at(i) - mean) * (at(i) - mean); });
    const C rstd = math::rsqrt(squares / cols + static_cast<C>(a.eps));
    a.mean.data<C>()[r] = mean;
    a.rstd.data<C>()[r] = rstd;
    auto normal = [&](int64_t i) { return (at(i) - mean) * rstd; };
    if (w != nullptr && b != nullptr) {
#pragma omp simd
      for (int64_t i = 0; i < a.cols; ++i)
        y[i] = static_cast<T>(normal(i) * static_cast<C>(w[i]) + static_cast<C>(b[i]));
    } else {
      for (int64_t i = 0; i < a.cols; ++i)
        y[i] = static_cast<T>(normal(i) * (w != nullptr ? static_cast<C>(w[i]) : C{1}) +
                              (b != nullptr ? static_cast<C>(b[i]) : C{0}));
    }
  }
};

/// dx = rstd (g - mean(g) - n mean(g n)) with g = dy * weight and n the normalised row; d_weight = sum of
/// dy n over the rows, d_bias = sum of dy.
struct LayerNormBackwardKernel {
  template <class T>
  static void run(const LayerNormBackwardArgs& a, const Stream&) {
    if (a.dx.present()) {
      const int64_t grain = std::max<int64_t>(1, norm_rows::kGrain / std::max<int64_t>(a.cols, 1));
      parallel_for(0, a.rows, grain, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) row<T>(a, r);
      });
    }
    if (a.d_weight.present() || a.d_bias.present()) columns<T>(a);
  }

 private:
  template <class T>
  static void row(const LayerNormBackwardArgs& a, int64_t r) {
    using C = ComputeType<T>;
    const T *x = a.x.data<T>() + r * a.cols, *dy = a.dy.data<T>() + r * a.cols,
            *w = norm_rows::optional<T>(a.weight);
    T* dx = a.dx.data<T>() + r * a.cols;
    const C mean = a.mean.data<C>()[r], rstd = a.rstd.data<C>()[r], cols = static_cast<C>(a.cols);
    auto apply = [&](auto g) {
      auto normal = [&](int64_t i) { return (static_cast<C>(x[i]) - mean) * rstd; };
      const C g_mean = norm_rows::sum<C>(a.cols, g) / cols;
      const C dot = norm_rows::sum<C>(a.cols, [&](int64_t i) { return g(i) * normal(i); }) / cols;
#pragma omp simd
      for (int64_t i = 0; i < a.cols; ++i) dx[i] = static_cast<T>(rstd * (g(i) - g_mean - normal(i) * dot));
    };
    if (w != nullptr) {
      apply([&](int64_t i) { return static_cast<C>(dy[i]) * static_cast<C>(w[i]); });
    } else {
      apply([&](int64_t i) { return static_cast<C>(dy[i]); });
    }
  }

  // The rows in parts, whose number depends on the shape only; the parts' sums are added up in order.
  template <class T>
  static void columns(const LayerNormBackwardArgs& a) {
    using C = ComputeType<T>;
    const int64_t cols = a.cols,
                  least = std::max<int64_t>(16, norm_rows::kGrain / std::max<int64_t>(cols, 1));
    const int64_t parts = std::clamp<int64_t>(a.rows / least, 1, 16);
    const std::unique_ptr<C[]> sums(new C[static_cast<size_t>(parts * 2 * cols)]());
    parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p)
        for (int64_t r = a.rows * p / parts; r < a.rows * (p + 1) / parts; ++r)
          add_row<T>(a, r, &sums[p * 2 * cols], &sums[(p * 2 + 1) * cols]);
    });
    for (int64_t p = 1; p < parts; ++p)
      for (int64_t i = 0; i < 2 * cols; ++i) sums[i] += sums[p * 2 * cols + i];
    for (int64_t i = 0; i < cols; ++i) {
      if (a.d_weight.present()) a.d_weight.data<T>()[i] = static_cast<T>(sums[i]);
      if (a.d_bias.present()) a.d_bias.data<T>()[i] = static_cast<T>(sums[cols + i]);
    }
  }
  template <class T, class C>
  static void add_row(const LayerNormBackwardArgs& a, int64_t r, C* weight, C* bias) {
    const T *x = a.x.data<T>() + r * a.cols, *dy = a.dy.data<T>() + r * a.cols;
    const C mean = a.mean.data<C>()[r], rstd = a.rstd.data<C>()[r];
#pragma omp simd
    for (int64_t i = 0; i < a.cols; ++i) {
      const C g = static_cast<C>(dy[i]);
      weight[i] += g * ((static_cast<C>(x[i]) - mean) * rstd);
      bias[i] += g;
    }
  }
};

}  // namespace gradus
