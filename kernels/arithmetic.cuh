// Functors of the four arithmetic operations, tensor with tensor and tensor with number.
#pragma once
#include "kernels/elementwise.cuh"

namespace gradus::kernels {

struct Add {
  template <class T>
  GRADUS_HD T operator()(T a, T b) const {
    return static_cast<T>(a + b);
  }
};
struct Sub {
  template <class T>
  GRADUS_HD T operator()(T a, T b) const {
    return static_cast<T>(a - b);
  }
};
struct Mul {
  template <class T>
  GRADUS_HD T operator()(T a, T b) const {
    return static_cast<T>(a * b);
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
