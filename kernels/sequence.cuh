// arange and linspace.
#pragma once
#include <gradus/base/scalar.h>
#include <gradus/runtime/stream.h>

#include <tuple>

#include "kernels/indexed.cuh"

namespace gradus {

/// y[i] = start + i * step
struct ArangeArgs {
  TensorArg y;
  Scalar start, step;
  static constexpr auto operands = std::tuple{out(&ArangeArgs::y)};
};

/// `steps` numbers from start to end; the second half is counted from the end, so that it is hit exactly.
struct LinspaceArgs {
  TensorArg y;
  double start, end;
  int64_t steps;
  static constexpr auto operands = std::tuple{out(&LinspaceArgs::y)};
};

namespace kernels {

struct Arange {
  template <class T>
  static void run(const ArangeArgs& a, const Stream&) {
    using C = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
    const C start = a.start.to<C>(), step = a.step.to<C>();
    fill_by_index<T, C>(a.y, [=](int64_t first, int64_t n, C* values) {
      for (int64_t i = 0; i < n; ++i) values[i] = start + static_cast<C>(first + i) * step;
    });
  }
};

struct Linspace {
  template <class T>
  static void run(const LinspaceArgs& a, const Stream&) {
    const double step = a.steps > 1 ? (a.end - a.start) / static_cast<double>(a.steps - 1) : 0;
    fill_by_index<T, double>(a.y, [&a, step](int64_t first, int64_t n, double* values) {
      for (int64_t i = 0; i < n; ++i) {
        const int64_t k = first + i;
        values[i] = k < (a.steps + 1) / 2 ? a.start + static_cast<double>(k) * step
                                          : a.end - static_cast<double>(a.steps - 1 - k) * step;
      }
    });
  }
};

}  // namespace kernels
}  // namespace gradus
