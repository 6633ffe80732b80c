// Functors of the unary operations: T is float, double or, where that makes sense, an integer type.
#pragma once
#include <gradus/base/math.h>

#include <limits>
#include <type_traits>

#include "kernels/elementwise.cuh"

namespace gradus::kernels {

struct Neg {
  template <class T>
  GRADUS_HD T operator()(T x) const {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(uint64_t{0} - static_cast<uint64_t>(x));  // wraps, as PyTorch's
    else
      return -x;
  }
};
struct Abs {
  template <class T>
  GRADUS_HD T operator()(T x) const {
    if constexpr (std::is_integral_v<T>)
      return math::is_negative(x) ? Neg{}(x) : x;
    else
      return std::fabs(x);
  }
};
/// -1, 0 or 1; 0 for NaN, as PyTorch's.
struct Sign {
  template <class T>
  GRADUS_HD T operator()(T x) const {
    return static_cast<T>(static_cast<int>(x > T{0}) - static_cast<int>(math::is_negative(x)));
  }
};
struct Square {
  template <class T>
  GRADUS_HD T operator()(T x) const {
    return static_cast<T>(x * x);
  }
};
struct Cube {
  template <class T>
  GRADUS_HD T operator()(T x) const {
    return static_cast<T>(x * x * x);
  }
};
struct Reciprocal {
  template <class T>
  GRADUS_HD T operator()(T x) const {
    return T{1} / x;
  }
};

#define GRADUS_MATH_FUNCTOR(Name, function) \
  struct Name {                             \
    template <class T>                      \
    GRADUS_HD T operator()(T x) const {     \
      return function(x);                   \
    }                                       \
  }
GRADUS_MATH_FUNCTOR(Exp, math::exp);
GRADUS_MATH_FUNCTOR(Expm1, math::expm1);
GRADUS_MATH_FUNCTOR(Log, math::log);
GRADUS_MATH_FUNCTOR(Log1p, math::log1p);
GRADUS_MATH_FUNCTOR(Sqrt, math::sqrt);
GRADUS_MATH_FUNCTOR(Rsqrt, math::rsqrt);
GRADUS_MATH_FUNCTOR(Sin, math::sin);
GRADUS_MATH_FUNCTOR(Cos, math::cos);
GRADUS_MATH_FUNCTOR(Tanh, math::tanh);
GRADUS_MATH_FUNCTOR(Sigmoid, math::sigmoid);
GRADUS_MATH_FUNCTOR(Erf, math::erf);
GRADUS_MATH_FUNCTOR(Floor, std::floor);
GRADUS_MATH_FUNCTOR(Ceil, std::ceil);
GRADUS_MATH_FUNCTOR(Round, std::nearbyint);  // half to even, the rounding mode no program here changes
GRADUS_MATH_FUNCTOR(Trunc, std::trunc);
#undef GRADUS_MATH_FUNCTOR

struct IsNan {
  template <class T>
  GRADUS_HD bool operator()(T x) const {
    return x != x;
  }
};
struct IsInf {
  template <class T>
  GRADUS_HD bool operator()(T x) const {
    return std::fabs(x) == std::numeric_limits<T>::infinity();
  }
};
struct IsFinite {
  template <class T>
  GRADUS_HD bool operator()(T x) const {
    return std::fabs(x) < std::numeric_limits<T>::infinity();
  }
};
struct LogicalNot {
  template <class T>
  GRADUS_HD bool operator()(T x) const {
    return x == T{0};
  }
};

/// x clamped to [p, q]: NaN stays NaN, and q wins where p > q.
struct Clamp {
  template <class T>
  struct Bound {
    T low, high;
    GRADUS_HD T operator()(T x) const {
      const T y = x < low ? low : x;
      return y > high ? high : y;
    }
  };
  template <class T>
  static Bound<T> bind(const UnaryArgs& a) {
    return {a.p.to<T>(), a.q.to<T>()};
  }
};

}  // namespace gradus::kernels
