// Quotients rounded down or towards zero, and what is left. Integer divisors are not 0: the operation has
// checked that.
#pragma once
#include <cmath>
#include <type_traits>

#include "kernels/unary.cuh"

namespace gradus::kernels {

struct TruncDivide {
  template <class T>
  GRADUS_HD T operator()(T a, T b) const {
    if constexpr (!std::is_integral_v<T>)
      return std::trunc(a / b);
    else
      return minus_one(b) ? Neg{}(a) : static_cast<T>(a / b);
  }
  // The least integer divided by -1 is a processor's trap.
  template <class T>
  static GRADUS_HD bool minus_one(T b) {
    return std::is_signed_v<T> && b == static_cast<T>(-1);
  }
};

struct Fmod {
  template <class T>
  GRADUS_HD T operator()(T a, T b) const {
    if constexpr (!std::is_integral_v<T>)
      return std::fmod(a, b);
    else
      return TruncDivide::minus_one(b) ? T{0} : static_cast<T>(a % b);
  }
};

struct Remainder {
  template <class T>
  GRADUS_HD T operator()(T a, T b) const {
    const T rest = Fmod{}(a, b);
    return rest != T{0} && math::is_negative(rest) != math::is_negative(b) ? static_cast<T>(rest + b) : rest;
  }
};

/// Rounds the exact quotient, not the rounded one: 1 // 0.1 is 9, as in Python, for 0.1 is a bit more.
struct FloorDivide {
  template <class T>
  GRADUS_HD T operator()(T a, T b) const {
    const T rest = Fmod{}(a, b);
    const bool below = rest != T{0} && math::is_negative(rest) != math::is_negative(b);
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(TruncDivide{}(a, b) - static_cast<T>(below));
    } else {
      if (b == T{0}) return a / b;
      const T quotient = (a - rest) / b - (below ? T{1} : T{0});  // whole but for rounding
      if (quotient == T{0}) return std::copysign(quotient, a / b);
      const T whole = std::floor(quotient);
      return quotient - whole > T{0.5} ? whole + T{1} : whole;
    }
  }
};

}  // namespace gradus::kernels
