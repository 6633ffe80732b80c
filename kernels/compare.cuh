// Functors of comparisons and logic, and the choice by a mask.
#pragma once
#include "kernels/elementwise.cuh"

namespace gradus::kernels {

struct Eq {
  template <class T>
  GRADUS_HD bool operator()(T a, T b) const {
    return a == b;
  }
};
struct Ne {
  template <class T>
  GRADUS_HD bool operator()(T a, T b) const {
    return a != b;
  }
};
struct Lt {
  template <class T>
  GRADUS_HD bool operator()(T a, T b) const {
    return a < b;
  }
};
struct Le {
  template <class T>
  GRADUS_HD bool operator()(T a, T b) const {
    return a <= b;
  }
};
struct LogicalAnd {
  template <class T>
  GRADUS_HD bool operator()(T a, T b) const {
    return a != T{0} && b != T{0};
  }
};
struct LogicalOr {
  template <class T>
  GRADUS_HD bool operator()(T a, T b) const {
    return a != T{0} || b != T{0};
  }
};
struct LogicalXor {
  template <class T>
  GRADUS_HD bool operator()(T a, T b) const {
    return (a != T{0}) != (b != T{0});
  }
};

/// The smaller and the larger; NaN if either is.
struct Minimum {
  template <class T>
  GRADUS_HD T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};
struct Maximum {
  template <class T>
  GRADUS_HD T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};

}  // namespace gradus::kernels
