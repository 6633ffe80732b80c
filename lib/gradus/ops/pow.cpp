#include "kernels/pow.cuh"

#include <gradus/ops/arithmetic.h>
#include <gradus/ops/autocast.h>
#include <gradus/ops/compare.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/pointwise.h>
#include <gradus/ops/pow.h>
#include <gradus/ops/unary.h>
#include <gradus/ops/where.h>

#include "kernels/arithmetic.cuh"
#include "kernels/unary.cuh"

namespace gradus {
namespace {

using namespace kernels;
using ops::Keep;

template <class F>
constexpr KernelTable<UnaryArgs> power() {
  return ops::unary_table<F, kNumericTypes>("pow");
}

constexpr auto kPow = ops::binary_table<Pow, kNumericTypes>("pow");
constexpr auto kPowNumber = power<WithNumber<Pow>>();
// The common exponents need no logarithm.
constexpr auto kPow2 = power<Square>();
constexpr auto kPow3 = power<Cube>();
constexpr auto kPowHalf = ops::unary_table<Sqrt>("pow");

const KernelTable<UnaryArgs>& table_for(double exponent) {
  return exponent == 2 ? kPow2 : exponent == 3 ? kPow3 : exponent == 0.5 ? kPowHalf : kPowNumber;
}

Tensor pow_rule(const Tensor& g, const Tensor& x, Scalar exponent, Scalar) {
  const double p = exponent.to<double>();
  if (p == 0) return zeros_like(g);
  return g * (pow(x, p - 1) * p);
}

struct PowBackward : Node {
  PowBackward(const Shape& a, const Shape& b) : a_sizes(a), b_sizes(b) {}
  const char* name() const override { return "PowBackward"; }
  TensorList backward(const TensorList& g) override {
    return {wants(0) ? sum_to_size(base_gradient(g[0]), a_sizes) : Tensor(),
            wants(1) ? sum_to_size(exponent_gradient(g[0]), b_sizes) : Tensor()};
  }
  // 0 at exponent 0, though x^-1 may be inf there.
  Tensor base_gradient(const Tensor& g) const {
    const Tensor x = saved(0), e = saved(1);
    return masked_fill(g * (e * pow(x, e - 1)), e == 0, 0);
  }
  // 0^e is 0 for all e > 0, though log 0 is -inf.
  Tensor exponent_gradient(const Tensor& g) const {
    const Tensor x = saved(0), e = saved(1);
    return masked_fill(g * (saved(2) * log(x)), logical_and(x == 0, e >= 0), 0);
  }
  Shape a_sizes, b_sizes;
};

}  // namespace

Tensor pow(const Tensor& x, Scalar exponent) {
  if (const auto cast = ops::autocast(ops::kFloat32OnGpu, x)) return pow(cast(x), exponent);
  const Tensor in = x.to(ops::result_type("pow", x, exponent));
  const double p = exponent.to<double>();
  GRADUS_CHECK(in.is_floating_point() || p >= 0, "E-ARG",
               "pow: Integers to negative integer powers are not allowed; the exponent is ", p,
               hint("convert the base with .to(kFloat32)"));
  if (p == 1) return mul(in, 1);
  return ops::unary(table_for(p), in, "PowBackward", Keep::x, pow_rule, exponent);
}

Tensor pow(const Tensor& x, const Tensor& exponent) {
  if (const auto cast = ops::autocast(ops::kFloat32OnGpu, x)) return pow(cast(x), cast(exponent));
  Tensor a = x, b = exponent;
  Tensor y = ops::run_binary(kPow, a, b, ops::result_type("pow", x, exponent));
  if (wants_grad(a, b)) record<PowBackward>(y, {a, b}, a.sizes(), b.sizes()).save(a).save(b).save(y);
  return y;
}

Tensor pow(Scalar base, const Tensor& exponent) {
  if (const auto cast = ops::autocast(ops::kFloat32OnGpu, exponent)) return pow(base, cast(exponent));
  return pow(
      scalar_tensor(base, {.dtype = ops::result_type("pow", exponent, base), .device = exponent.device()}),
      exponent);
}

Tensor Tensor::pow(Scalar exponent) const { return gradus::pow(*this, exponent); }

}  // namespace gradus
