// x^y.
#pragma once
#include <gradus/base/math.h>

#include <type_traits>

#include "kernels/elementwise.cuh"

namespace gradus::kernels {

struct Pow {
  template <class T>
  GRADUS_HD T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>)
      return math::is_negative(y) ? inverse(x, y) : power(x, y);
    else
      return math::pow(x, y);
  }

 private:
  // Unsigned, so that overflow wraps around.
  template <class T>
  static GRADUS_HD T power(T x, T y) {
    uint64_t result = 1, factor = static_cast<uint64_t>(x);
    for (uint64_t n = static_cast<uint64_t>(y); n != 0; n >>= 1) {
      if (n & 1) result *= factor;
      factor *= factor;
    }
    return static_cast<T>(result);
  }
  // x^y for y < 0, cut to a whole number.
  template <class T>
  static GRADUS_HD T inverse(T x, T y) {
    if (x == T{1}) return T{1};
    if (x == static_cast<T>(-1)) return static_cast<T>(y & T{1} ? -1 : 1);
    return T{0};
  }
};

}  // namespace gradus::kernels
