#include "kernels/unary.cuh"

#include <gradus/ops/arithmetic.h>
#include <gradus/ops/autocast.h>
#include <gradus/ops/pointwise.h>
#include <gradus/ops/unary.h>

namespace gradus {
namespace {

using namespace kernels;
using ops::floating_unary;
using ops::Keep;
using ops::unary;
using ops::unary_table;

constexpr auto kNeg = unary_table<Neg, kNumericTypes>("neg");
constexpr auto kAbs = unary_table<Abs, kNumericTypes>("abs");
constexpr auto kSign = unary_table<Sign, kNumericTypes>("sign");
constexpr auto kSquare = unary_table<Square, kNumericTypes>("square");
constexpr auto kReciprocal = unary_table<Reciprocal>("reciprocal");
constexpr auto kExp = unary_table<Exp>("exp");
constexpr auto kExpm1 = unary_table<Expm1>("expm1");
constexpr auto kLog = unary_table<Log>("log");
constexpr auto kLog1p = unary_table<Log1p>("log1p");
constexpr auto kSqrt = unary_table<Sqrt>("sqrt");
constexpr auto kRsqrt = unary_table<Rsqrt>("rsqrt");
constexpr auto kSin = unary_table<Sin>("sin");
constexpr auto kCos = unary_table<Cos>("cos");
constexpr auto kErf = unary_table<Erf>("erf");

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
  if (const auto cast = ops::autocast(ops::kFloat32OnGpu, x)) return reciprocal(cast(x));
  return floating_unary(kReciprocal, x, "ReciprocalBackward", Keep::y,
                        [](const Tensor& g, const Tensor& y, Scalar, Scalar) { return neg(g * square(y)); });
}
Tensor exp(const Tensor& x) {
  if (const auto cast = ops::autocast(ops::kFloat32OnGpu, x)) return exp(cast(x));
  return floating_unary(kExp, x, "ExpBackward", Keep::y,
                        [](const Tensor& g, const Tensor& y, Scalar, Scalar) { return g * y; });
}
Tensor expm1(const Tensor& x) {
  if (const auto cast = ops::autocast(ops::kFloat32OnGpu, x)) return expm1(cast(x));
  return floating_unary(kExpm1, x, "Expm1Backward", Keep::y,
                        [](const Tensor& g, const Tensor& y, Scalar, Scalar) { return g * (y + 1); });
}
Tensor log(const Tensor& x) {
  if (const auto cast = ops::autocast(ops::kFloat32OnGpu, x)) return log(cast(x));
  return floating_unary(kLog, x, "LogBackward", Keep::x,
                        [](const Tensor& g, const Tensor& x, Scalar, Scalar) { return g / x; });
}
Tensor log1p(const Tensor& x) {
  if (const auto cast = ops::autocast(ops::kFloat32OnGpu, x)) return log1p(cast(x));
  return floating_unary(kLog1p, x, "Log1pBackward", Keep::x,
                        [](const Tensor& g, const Tensor& x, Scalar, Scalar) { return g / (x + 1); });
}
Tensor sqrt(const Tensor& x) {
  return floating_unary(kSqrt, x, "SqrtBackward", Keep::y,
                        [](const Tensor& g, const Tensor& y, Scalar, Scalar) { return g / (y * 2); });
}
Tensor rsqrt(const Tensor& x) {
  if (const auto cast = ops::autocast(ops::kFloat32OnGpu, x)) return rsqrt(cast(x));
  return floating_unary(
      kRsqrt, x, "RsqrtBackward", Keep::y,
      [](const Tensor& g, const Tensor& y, Scalar, Scalar) { return g * (square(y) * y * -0.5); });
}
Tensor sin(const Tensor& x) {
  return floating_unary(kSin, x, "SinBackward", Keep::x,
                        [](const Tensor& g, const Tensor& x, Scalar, Scalar) { return g * cos(x); });
}
Tensor cos(const Tensor& x) {
  return floating_unary(kCos, x, "CosBackward", Keep::x,
                        [](const Tensor& g, const Tensor& x, Scalar, Scalar) { return neg(g * sin(x)); });
}
Tensor erf(const Tensor& x) {
  return floating_unary(kErf, x, "ErfBackward", Keep::x,
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
