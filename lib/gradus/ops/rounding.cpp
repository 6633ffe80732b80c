#include "kernels/rounding.cuh"

#include <gradus/ops/arithmetic.h>
#include <gradus/ops/compare.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/pointwise.h>
#include <gradus/ops/rounding.h>
#include <gradus/ops/unary.h>

namespace gradus {
namespace {

using namespace kernels;
using ops::binary_table;
using ops::Keep;
using ops::unary_table;

constexpr auto kFloor = unary_table<Floor>("floor");
constexpr auto kCeil = unary_table<Ceil>("ceil");
constexpr auto kRound = unary_table<Round>("round");
constexpr auto kTrunc = unary_table<Trunc>("trunc");
constexpr auto kSign = unary_table<Sign, kNumericTypes>("sign");
constexpr auto kFloorDivide = binary_table<FloorDivide, kNumericTypes>("floor_divide");
constexpr auto kTruncDivide = binary_table<TruncDivide, kNumericTypes>("div");
constexpr auto kRemainder = binary_table<Remainder, kNumericTypes>("remainder");
constexpr auto kFmod = binary_table<Fmod, kNumericTypes>("fmod");

Tensor no_slope(const Tensor& g, const Tensor&, Scalar, Scalar) { return zeros_like(g); }

Tensor whole(const KernelTable<UnaryArgs>& table, const Tensor& x, const char* backward) {
  ops::check_defined(table.name(), x);
  if (is_integral(x.dtype())) return x.clone();
  return ops::unary(table, x, backward, Keep::nothing, no_slope);
}

// A kernel cannot throw on every device, and an integer division by zero ends the process.
void check_divisor(const Tensor& b, DType dtype, const char* op) {
  if (gradus::is_floating_point(dtype)) return;
  GRADUS_CHECK(logical_not(b).sum().item<int64_t>() == 0, "E-DIVISION", op,
               ": integer division by zero; the divisor has shape ", b.sizes(),
               hint("convert the operands with .to(kFloat32), or mask the zeros with where()"));
}

Tensor divide(const KernelTable<BinaryArgs>& table, const Tensor& a, const Tensor& b, const char* backward,
              ops::BinaryRule rule) {
  const DType dtype = ops::result_type(table.name(), a, b);
  check_divisor(b, dtype, table.name());
  return ops::binary(table, a, b, dtype, backward, rule);
}

// A number as a tensor that does not widen x's dtype within its category.
Tensor divisor(const char* op, const Tensor& x, Scalar b) {
  return scalar_tensor(b, {.dtype = ops::result_type(op, x, b), .device = x.device()});
}

TensorList no_slopes(const Tensor& g, const Tensor&, const Tensor&) {
  const Tensor zero = zeros_like(g);
  return {zero, zero};
}

}  // namespace

Tensor floor(const Tensor& x) { return whole(kFloor, x, "FloorBackward"); }
Tensor ceil(const Tensor& x) { return whole(kCeil, x, "CeilBackward"); }
Tensor round(const Tensor& x) { return whole(kRound, x, "RoundBackward"); }
Tensor trunc(const Tensor& x) { return whole(kTrunc, x, "TruncBackward"); }
Tensor sign(const Tensor& x) { return ops::unary(kSign, x, "SignBackward", Keep::nothing, no_slope); }

Tensor div(const Tensor& a, const Tensor& b, Rounding rounding) {
  return divide(rounding == Rounding::floor ? kFloorDivide : kTruncDivide, a, b, "DivBackward", no_slopes);
}
Tensor remainder(const Tensor& a, const Tensor& b) {
  return divide(kRemainder, a, b, "RemainderBackward", [](const Tensor& g, const Tensor& a, const Tensor& b) {
    return TensorList{g, neg(g * div(a, b, Rounding::floor))};
  });
}
Tensor fmod(const Tensor& a, const Tensor& b) {
  return divide(kFmod, a, b, "FmodBackward", [](const Tensor& g, const Tensor& a, const Tensor& b) {
    return TensorList{g, neg(g * div(a, b, Rounding::trunc))};
  });
}

Tensor floor_divide(const Tensor& a, const Tensor& b) { return div(a, b, Rounding::floor); }
Tensor div(const Tensor& a, Scalar b, Rounding rounding) {
  return div(a, divisor(rounding == Rounding::floor ? "floor_divide" : "div", a, b), rounding);
}
Tensor floor_divide(const Tensor& a, Scalar b) { return div(a, b, Rounding::floor); }
Tensor remainder(const Tensor& a, Scalar b) { return remainder(a, divisor("remainder", a, b)); }
Tensor fmod(const Tensor& a, Scalar b) { return fmod(a, divisor("fmod", a, b)); }

}  // namespace gradus
