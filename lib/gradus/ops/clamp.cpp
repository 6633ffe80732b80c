#include <gradus/ops/arithmetic.h>
#include <gradus/ops/clamp.h>
#include <gradus/ops/compare.h>
#include <gradus/ops/pointwise.h>
#include <gradus/ops/where.h>

#include <algorithm>
#include <limits>

#include "kernels/compare.cuh"
#include "kernels/unary.cuh"

namespace gradus {
namespace {

using namespace kernels;

template <class F>
constexpr KernelTable<BinaryArgs> extremum(const char* name) {
  return ops::with_bool<BinaryKernel<F>>(ops::binary_table<F, kNumericTypes>(name));
}

constexpr auto kMinimum = extremum<Minimum>("minimum");
constexpr auto kMaximum = extremum<Maximum>("maximum");
constexpr auto kClamp = ops::unary_table<Clamp, kNumericTypes>("clamp");

// g where `won`, half of it at ties, 0 where the other operand `lost` to nobody; all of it for NaN.
Tensor share(const Tensor& g, const Tensor& tie, const Tensor& lost) {
  return masked_fill(where(tie, g * 0.5, g), lost, 0);
}

struct Bounds {
  Scalar low, high;
};

template <class T>
Bounds bounds_in(std::optional<Scalar> min, std::optional<Scalar> max) {
  constexpr int64_t least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
  auto inside = [&](Scalar s) { return std::clamp(s.to<int64_t>(), least, most); };
  return {min ? inside(*min) : least, max ? inside(*max) : most};
}

// The two bounds as numbers that the dtype holds.
Bounds bounds_for(DType dtype, std::optional<Scalar> min, std::optional<Scalar> max) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  if (gradus::is_floating_point(dtype)) return {min.value_or(-inf), max.value_or(inf)};
  if (dtype == kUInt8) return bounds_in<uint8_t>(min, max);
  if (dtype == kInt32) return bounds_in<int32_t>(min, max);
  return bounds_in<int64_t>(min, max);
}

struct ClampBackward : Node {
  const char* name() const override { return "ClampBackward"; }
  TensorList backward(const TensorList& g) override { return {masked_fill(g[0], saved(0), 0)}; }
};

DType clamped_type(const Tensor& x, std::optional<Scalar> min, std::optional<Scalar> max) {
  ops::check_defined("clamp", x);
  GRADUS_CHECK(min || max, "E-ARG", "clamp: At least one of 'min' or 'max' must not be None");
  DType dtype = x.dtype();
  for (const auto& bound : {min, max})
    if (bound && dtype != kBool) dtype = promote_with_scalar(dtype, bound->kind());
  return dtype;
}

// Where no gradient passes: outside, at a bound, and at NaN.
Tensor stopped(const Tensor& x, const Tensor& y, std::optional<Scalar> min, std::optional<Scalar> max) {
  Tensor mask = ne(x, y);
  for (const auto& bound : {min, max})
    if (bound) mask = logical_or(mask, eq(x, *bound));
  return mask;
}

}  // namespace

Tensor minimum(const Tensor& a, const Tensor& b) {
  return ops::binary(kMinimum, a, b, ops::result_type("minimum", a, b), "MinimumBackward",
                     [](const Tensor& g, const Tensor& a, const Tensor& b) {
                       const Tensor tie = eq(a, b);
                       return TensorList{share(g, tie, gt(a, b)), share(g, tie, lt(a, b))};
                     });
}
Tensor maximum(const Tensor& a, const Tensor& b) {
  return ops::binary(kMaximum, a, b, ops::result_type("maximum", a, b), "MaximumBackward",
                     [](const Tensor& g, const Tensor& a, const Tensor& b) {
                       const Tensor tie = eq(a, b);
                       return TensorList{share(g, tie, lt(a, b)), share(g, tie, gt(a, b))};
                     });
}

Tensor clamp(const Tensor& x, std::optional<Scalar> min, std::optional<Scalar> max) {
  const Tensor in = x.to(clamped_type(x, min, max));
  const Bounds bounds = bounds_for(in.dtype(), min, max);
  Tensor y = ops::run_unary(kClamp, in, bounds.low, bounds.high);
  if (wants_grad(in)) record<ClampBackward>(y, in).save(stopped(in, y, min, max));
  return y;
}

Tensor& Tensor::clamp_(std::optional<Scalar> min, std::optional<Scalar> max) {
  if (wants_grad(*this)) return ops::assign(*this, gradus::clamp(*this, min, max), "clamp");
  check_inplace(*this, "clamp");
  const DType result = clamped_type(*this, min, max);
  GRADUS_CHECK(result == dtype(), "E-DTYPE", "clamp_: result type ", to_string(result),
               " can't be cast to the desired output type ", to_string(dtype()),
               hint("use the out-of-place operation"));
  const Bounds bounds = bounds_for(dtype(), min, max);
  launch(kClamp, dtype(), ops::stream_of(*this), UnaryArgs{arg(), arg(), bounds.low, bounds.high});
  bump_version();
  return *this;
}
Tensor Tensor::clamp(std::optional<Scalar> min, std::optional<Scalar> max) const {
  return gradus::clamp(*this, min, max);
}

}  // namespace gradus
