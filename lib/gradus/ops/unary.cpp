#include "kernels/unary.cuh"

#include <gradus/ops/arithmetic.h>
#include <gradus/ops/pointwise.h>
#include <gradus/ops/unary.h>

namespace gradus {
namespace {

using namespace kernels;
using ops::as_floating;
using ops::Keep;
using ops::unary;

template <class F>
constexpr KernelTable<UnaryArgs> floating(const char* name) {
  return KernelTable<UnaryArgs>(name).host<UnaryKernel<F>, kFloatingTypes>();
}
template <class F>
constexpr KernelTable<UnaryArgs> numeric(const char* name) {
  return KernelTable<UnaryArgs>(name).host<UnaryKernel<F>, kNumericTypes>();
}

constexpr auto kNeg = numeric<Neg>("neg");
constexpr auto kAbs = numeric<Abs>("abs");
constexpr auto kSign = numeric<Sign>("sign");
constexpr auto kSquare = numeric<Square>("square");
constexpr auto kReciprocal = floating<Reciprocal>("reciprocal");
constexpr auto kExp = floating<Exp>("exp");
constexpr auto kExpm1 = floating<Expm1>("expm1");
constexpr auto kLog = floating<Log>("log");
constexpr auto kLog1p = floating<Log1p>("log1p");
constexpr auto kSqrt = floating<Sqrt>("sqrt");
constexpr auto kRsqrt = floating<Rsqrt>("rsqrt");
constexpr auto kSin = floating<Sin>("sin");
constexpr auto kCos = floating<Cos>("cos");
constexpr auto kErf = floating<Erf>("erf");

}  // namespace

// The rules: g is dy, then comes x or y, whichever was kept.

Tensor neg(const Tensor& x) {
  return unary(kNeg, x, "NegBackward", Keep::nothing,
               [](const Tensor& g, const Tensor&, Scalar, Scalar) { return neg(g); });
}
Tensor abs(const Tensor& x) {
  return unary(kAbs, x, "AbsBackward", Keep::x,
               [](const Tensor& g, const Tensor& x, Scalar, Scalar) { return g * ops::run_unary(kSign, x); });
}
Tensor square(const Tensor& x) {
  return unary(kSquare, x, "SquareBackward", Keep::x,
               [](const Tensor& g, const Tensor& x, Scalar, Scalar) { return g * (x * 2); });
}
Tensor reciprocal(const Tensor& x) {
  return unary(kReciprocal, as_floating(x), "ReciprocalBackward", Keep::y,
               [](const Tensor& g, const Tensor& y, Scalar, Scalar) { return neg(g * square(y)); });
}
Tensor exp(const Tensor& x) {
  return unary(kExp, as_floating(x), "ExpBackward", Keep::y,
               [](const Tensor& g, const Tensor& y, Scalar, Scalar) { return g * y; });
}
Tensor expm1(const Tensor& x) {
  return unary(kExpm1, as_floating(x), "Expm1Backward", Keep::y,
               [](const Tensor& g, const Tensor& y, Scalar, Scalar) { return g * (y + 1); });
}
Tensor log(const Tensor& x) {
  return unary(kLog, as_floating(x), "LogBackward", Keep::x,
               [](const Tensor& g, const Tensor& x, Scalar, Scalar) { return g / x; });
}
Tensor log1p(const Tensor& x) {
  return unary(kLog1p, as_floating(x), "Log1pBackward", Keep::x,
               [](const Tensor& g, const Tensor& x, Scalar, Scalar) { return g / (x + 1); });
}
Tensor sqrt(const Tensor& x) {
  return unary(kSqrt, as_floating(x), "SqrtBackward", Keep::y,
               [](const Tensor& g, const Tensor& y, Scalar, Scalar) { return g / (y * 2); });
}
Tensor rsqrt(const Tensor& x) {
  return unary(kRsqrt, as_floating(x), "RsqrtBackward", Keep::y,
               [](const Tensor& g, const Tensor& y, Scalar, Scalar) { return g * (square(y) * y * -0.5); });
}
Tensor sin(const Tensor& x) {
  return unary(kSin, as_floating(x), "SinBackward", Keep::x,
               [](const Tensor& g, const Tensor& x, Scalar, Scalar) { return g * cos(x); });
}
Tensor cos(const Tensor& x) {
  return unary(kCos, as_floating(x), "CosBackward", Keep::x,
               [](const Tensor& g, const Tensor& x, Scalar, Scalar) { return neg(g * sin(x)); });
}
Tensor erf(const Tensor& x) {
  return unary(kErf, as_floating(x), "ErfBackward", Keep::x,
               [](const Tensor& g, const Tensor& x, Scalar, Scalar) {
                 constexpr double two_over_sqrt_pi = 1.12837916709551257390;
                 return g * (exp(neg(square(x))) * two_over_sqrt_pi);
               });
}

Tensor& Tensor::sqrt_() {
  if (wants_grad(*this)) return ops::assign(*this, gradus::sqrt(*this), "sqrt");
  check_inplace(*this, "sqrt");
  GRADUS_CHECK(is_floating_point(), "E-DTYPE",
               "sqrt_: result type float32 can't be cast to the desired output type ", to_string(dtype()),
               hint("use the out-of-place operation"));
  launch(kSqrt, dtype(), ops::stream_of(*this), UnaryArgs{arg(), arg(), 0, 0});
  bump_version();
  return *this;
}

Tensor operator-(const Tensor& x) { return neg(x); }
Tensor Tensor::neg() const { return gradus::neg(*this); }
Tensor Tensor::abs() const { return gradus::abs(*this); }
Tensor Tensor::exp() const { return gradus::exp(*this); }
Tensor Tensor::log() const { return gradus::log(*this); }
Tensor Tensor::sqrt() const { return gradus::sqrt(*this); }

}  // namespace gradus
