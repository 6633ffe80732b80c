// Functors of the activations. XGrad: dx, given dy and what the forward pass kept (x or y).
#pragma once
#include "kernels/unary.cuh"

namespace gradus::kernels {

inline constexpr double kSqrtHalf = 0.70710678118654752440;
inline constexpr double kSqrtTwoOverPi = 0.79788456080286535588;
inline constexpr double kInvSqrtTwoPi = 0.39894228040143267794;
inline constexpr double kGeluCubic = 0.044715;

/// max(x, 0); NaN stays NaN.
struct Relu {
  template <class T>
  GRADUS_HD T operator()(T x) const {
    return math::is_negative(x) ? T{0} : x;
  }
};
struct ReluGrad {
  template <class T>
  GRADUS_HD T operator()(T dy, T y) const {
    return y <= T{0} ? T{0} : dy;
  }
};

// [snippet leaky_relu]
struct LeakyRelu {
  template <class T>
  struct Bound {
    T slope;
    GRADUS_HD T operator()(T x) const { return x > T{0} ? x : x * slope; }
  };
  template <class T>
  static Bound<T> bind(const UnaryArgs& a) {
    return {a.p.to<T>()};
  }
};
struct LeakyReluGrad {
  template <class T>
  struct Bound {
    T slope;
    GRADUS_HD T operator()(T dy, T x) const { return x > T{0} ? dy : dy * slope; }
  };
  template <class T>
  static Bound<T> bind(const BinaryArgs& a) {
    return {a.p.to<T>()};
  }
};
// [/snippet leaky_relu]

struct SigmoidGrad {
  template <class T>
  GRADUS_HD T operator()(T dy, T y) const {
    return dy * ((T{1} - y) * y);
  }
};
struct TanhGrad {
  template <class T>
  GRADUS_HD T operator()(T dy, T y) const {
    return dy * (T{1} - y * y);
  }
};

/// x times the normal distribution's cumulative function.
struct Gelu {
  template <class T>
  GRADUS_HD T operator()(T x) const {
    return x * (T{0.5} * (T{1} + math::erf(x * static_cast<T>(kSqrtHalf))));
  }
};
struct GeluGrad {
  template <class T>
  GRADUS_HD T operator()(T dy, T x) const {
    const T cdf = T{0.5} * (T{1} + math::erf(x * static_cast<T>(kSqrtHalf)));
    const T pdf = math::exp(T{-0.5} * x * x) * static_cast<T>(kInvSqrtTwoPi);
    return dy * (cdf + x * pdf);
  }
};

/// Its approximation by tanh.
struct GeluTanh {
  template <class T>
  static GRADUS_HD T inner(T x) {
    return math::tanh(static_cast<T>(kSqrtTwoOverPi) * (x + static_cast<T>(kGeluCubic) * (x * x * x)));
  }
  template <class T>
  GRADUS_HD T operator()(T x) const {
    return T{0.5} * x * (T{1} + inner(x));
  }
};
struct GeluTanhGrad {
  template <class T>
  GRADUS_HD T operator()(T dy, T x) const {
    const T t = GeluTanh::inner(x);
    const T slope = static_cast<T>(kSqrtTwoOverPi) * (T{1} + static_cast<T>(3 * kGeluCubic) * (x * x));
    return dy * (T{0.5} * (T{1} + t) + T{0.5} * x * (T{1} - t * t) * slope);
  }
};

/// x sigmoid(x)
struct Silu {
  template <class T>
  GRADUS_HD T operator()(T x) const {
    return x * math::sigmoid(x);
  }
};
struct SiluGrad {
  template <class T>
  GRADUS_HD T operator()(T dy, T x) const {
    const T s = math::sigmoid(x);
    return dy * (s * (T{1} + x * (T{1} - s)));
  }
};

/// log(1 + exp(beta x)) / beta, and x itself where beta x > threshold.
struct Softplus {
  template <class T>
  struct Bound {
    T beta, threshold;
    GRADUS_HD T operator()(T x) const {
      const T z = x * beta;
      return z > threshold ? x : math::log1p(math::exp(z)) / beta;
    }
  };
  template <class T>
  static Bound<T> bind(const UnaryArgs& a) {
    return {a.p.to<T>(), a.q.to<T>()};
  }
};

}  // namespace gradus::kernels
