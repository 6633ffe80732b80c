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

/// The numbers of arange, computed in C.
template <class C>
struct ArangeNumbers {
  C start, step;
  explicit ArangeNumbers(const ArangeArgs& a) : start(a.start.to<C>()), step(a.step.to<C>()) {}
  GRADUS_HD C at(int64_t i) const { return start + static_cast<C>(i) * step; }
};
template <class T>
using ArangeType = std::conditional_t<std::is_integral_v<T>, int64_t, double>;

struct LinspaceNumbers {
  double start, end, step;
  int64_t steps;
  explicit LinspaceNumbers(const LinspaceArgs& a)
      : start(a.start),
        end(a.end),
        step(a.steps > 1 ? (a.end - a.start) / static_cast<double>(a.steps - 1) : 0),
        steps(a.steps) {}
  GRADUS_HD double at(int64_t i) const {
    return i < (steps + 1) / 2 ? start + static_cast<double>(i) * step
                               : end - static_cast<double>(steps - 1 - i) * step;
  }
};

struct Arange {
  template <class T>
  static void run(const ArangeArgs& a, const Stream&) {
    using C = ArangeType<T>;
    fill_by_index<T, C>(a.y, [numbers = ArangeNumbers<C>(a)](int64_t first, int64_t n, C* values) {
      for (int64_t i = 0; i < n; ++i) values[i] = numbers.at(first + i);
    });
  }
};

struct Linspace {
  template <class T>
  static void run(const LinspaceArgs& a, const Stream&) {
    fill_by_index<T, double>(a.y, [numbers = LinspaceNumbers(a)](int64_t first, int64_t n, double* values) {
      for (int64_t i = 0; i < n; ++i) values[i] = numbers.at(first + i);
    });
  }
};

}  // namespace kernels
}  // namespace gradus
