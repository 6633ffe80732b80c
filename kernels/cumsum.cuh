// Running sums along one dimension: the host loop of cpu and sim.
#pragma once
#include "kernels/reduce.cuh"

namespace gradus {

// [snippet arguments]
/// y[i] = x[0] + … + x[i] along `dim`, or with `reverse` x[i] + … + x[last]. x and y: one shape, any strides.
struct CumSumArgs {
  TensorArg x, y;
  int dim;
  bool reverse;
  static constexpr auto operands = std::tuple{in(&CumSumArgs::x), out(&CumSumArgs::y)};
};
// [/snippet arguments]

struct CumSumKernel {
  template <class T>
  static void run(const CumSumArgs& args, const Stream&) {
    const int64_t n = args.x.sizes[args.dim], rows = args.x.numel() / std::max<int64_t>(n, 1);
    if (args.x.numel() == 0) return;
    parallel_for(0, rows, std::max<int64_t>(1, reduction::kGrain / n), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) row<T>(args, r);
    });
  }

 private:
  // In double, or int64: a float would stop growing where its terms fall below half an ulp.
  template <class T>
  static void row(const CumSumArgs& args, int64_t r) {
    using C = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
    using Y = std::conditional_t<std::is_integral_v<T>, int64_t, T>;
    using Wide = ComputeType<T>;
    int64_t x_at = 0, y_at = 0;
    for (int d = args.x.dim() - 1; d >= 0; --d) {
      if (d == args.dim) continue;
      const int64_t i = r % args.x.sizes[d];
      r /= args.x.sizes[d];
      x_at += i * args.x.strides[d], y_at += i * args.y.strides[d];
    }
    const T* x = args.x.data<T>() + x_at;
    Y* y = args.y.data<Y>() + y_at;
    const int64_t n = args.x.sizes[args.dim], x_step = args.x.strides[args.dim],
                  y_step = args.y.strides[args.dim];
    C total = 0;
    for (int64_t k = 0; k < n; ++k) {
      const int64_t i = args.reverse ? n - 1 - k : k;
      total += static_cast<C>(static_cast<Wide>(x[i * x_step]));
      if constexpr (std::is_same_v<Wide, float>) {
        y[i * y_step] = static_cast<Y>(static_cast<float>(total));
      } else {
        y[i * y_step] = static_cast<Y>(total);
      }
    }
  }
};

}  // namespace gradus
