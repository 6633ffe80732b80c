// Functors of the four arithmetic operations, tensor with tensor and tensor with number.
#pragma once
#include "kernels/elementwise.cuh"

namespace gradus::kernels {

// Integers wrap around, as in PyTorch. In C++ only unsigned ones may, so signed ones are computed as such.
template <class T>
GRADUS_HD auto wrapping(T x) {
  if constexpr (std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t>) {
    return static_cast<std::make_unsigned_t<T>>(x);
  } else {
    return x;
  }
}

struct Add {
  template <class T>
  GRADUS_HD T operator()(T a, T b) const {
    return static_cast<T>(wrapping(a) + wrapping(b));
  }
};
struct Sub {
  template <class T>
  GRADUS_HD T operator()(T a, T b) const {
    return static_cast<T>(wrapping(a) - wrapping(b));
  }
};
struct Mul {
  template <class T>
  GRADUS_HD T operator()(T a, T b) const {
    return static_cast<T>(wrapping(a) * wrapping(b));
  }
};
struct Div {
  template <class T>
  GRADUS_HD T operator()(T a, T b) const {
    return a / b;
  }
};

/// y = Op(x, p)
template <class Op>
struct WithNumber {
  template <class T>
  struct Bound {
    T p;
    GRADUS_HD auto operator()(T x) const { return Op{}(x, p); }
  };
  template <class T>
  static Bound<T> bind(const UnaryArgs& a) {
    return {a.p.to<T>()};
  }
};
/// y = Op(p, x)
template <class Op>
struct NumberWith {
  template <class T>
  struct Bound {
    T p;
    GRADUS_HD auto operator()(T x) const { return Op{}(p, x); }
  };
  template <class T>
  static Bound<T> bind(const UnaryArgs& a) {
    return {a.p.to<T>()};
  }
};

}  // namespace gradus::kernels
