// From the number of an element to its place in strided operands, cheaply: a GPU divides slowly, and a body's
// parameters are few.
#pragma once
#include <gradus/base/macros.h>

#include "kernels/elementwise.cuh"

namespace gradus::kernels {

/// A divisor d >= 1 known before the launch. Numbers below 2^31 are divided by a multiplication and a shift
/// (Granlund and Montgomery, "Division by invariant integers using multiplication", PLDI 1994), larger ones
/// as ever.
struct Divisor {
  int64_t value = 1;
  uint32_t magic = 1, shift = 0;

  Divisor() = default;
  Divisor(int64_t d) : value(d) {  // a size converts by itself
    if (d >= int64_t{1} << 31) {   // numbers below 2^31 have 0 of it
      magic = 0, shift = 31;
      return;
    }
    while (int64_t{1} << shift < d) ++shift;
    magic = static_cast<uint32_t>(((uint64_t{1} << shift) - static_cast<uint64_t>(d)) * (uint64_t{1} << 32) /
                                  static_cast<uint64_t>(d)) +
            1;
  }
  /// n / d, for n >= 0
  GRADUS_HD int64_t divide(int64_t n) const {
    if (n >> 31 != 0) return n / value;
    const auto small = static_cast<uint32_t>(n);
    return (static_cast<uint32_t>(uint64_t{small} * magic >> 32) + small) >> shift;
  }
  /// n % d, leaving n / d in n
  GRADUS_HD int64_t remainder(int64_t& n) const {
    const int64_t whole = n, quotient = divide(n);
    n = quotient;
    return whole - quotient * value;
  }
};

/// The loop nest of N operands (elementwise.cuh), as a body carries it. Iteration i runs from 0 to count - 1,
/// the innermost dimension fastest.
template <int N>
struct Nest {
  int ndim;
  int64_t count;
  Divisor sizes[kMaxDims];
  int64_t strides[kMaxDims][N];

  Nest() = default;
  Nest(const elementwise::LoopNest<N - 1>& nest) : ndim(nest.ndim), count(1) {
    for (int d = 0; d < ndim; ++d) {
      count *= nest.sizes[d];
      sizes[d] = Divisor(nest.sizes[d] > 0 ? nest.sizes[d] : 1);
      for (int o = 0; o < N; ++o) strides[d][o] = nest.strides[d][o];
    }
  }
  /// Where iteration i lies in each operand, in elements from its start.
  struct Places {
    int64_t at[N];
    GRADUS_HD int64_t operator[](int o) const { return at[o]; }
  };
  GRADUS_HD Places locate(int64_t i) const {
    Places places = {};
    for (int d = ndim - 1; d > 0; --d) add(places, d, sizes[d].remainder(i));
    if (ndim > 0) add(places, 0, i);
    return places;
  }

 private:
  GRADUS_HD void add(Places& places, int d, int64_t step) const {
    GRADUS_UNROLL
    for (int o = 0; o < N; ++o) places.at[o] += step * strides[d][o];
  }
};

}  // namespace gradus::kernels
