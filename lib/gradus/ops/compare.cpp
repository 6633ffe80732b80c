#include "kernels/compare.cuh"

#include <gradus/ops/arithmetic.h>
#include <gradus/ops/compare.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/pointwise.h>
#include <gradus/ops/unary.h>

#include <cmath>
#include <limits>

#include "kernels/arithmetic.cuh"
#include "kernels/unary.cuh"

namespace gradus {
namespace {

using namespace kernels;

template <class F>
constexpr KernelTable<BinaryArgs> comparison(const char* name) {
  using K = CompareKernel<F>;
  return ops::with_bool<K>(KernelTable<BinaryArgs>(name).everywhere<K, kNumericTypes>());
}
template <class F>
constexpr KernelTable<UnaryArgs> number_comparison(const char* name) {
  using K = UnaryTestKernel<F>;
  return ops::with_bool<K>(KernelTable<UnaryArgs>(name).everywhere<K, kNumericTypes>());
}
template <class F>
constexpr KernelTable<BinaryArgs> logic(const char* name) {
  return ops::with_bool<CompareKernel<F>>(KernelTable<BinaryArgs>(name));
}

constexpr auto kEq = comparison<Eq>("eq");
constexpr auto kNe = comparison<Ne>("ne");
constexpr auto kLt = comparison<Lt>("lt");
constexpr auto kLe = comparison<Le>("le");
constexpr auto kGt = comparison<Lt>("gt");  // with the operands exchanged
constexpr auto kGe = comparison<Le>("ge");
constexpr auto kEqNumber = number_comparison<WithNumber<Eq>>("eq");
constexpr auto kNeNumber = number_comparison<WithNumber<Ne>>("ne");
constexpr auto kLtNumber = number_comparison<WithNumber<Lt>>("lt");
constexpr auto kLeNumber = number_comparison<WithNumber<Le>>("le");
constexpr auto kGtNumber = number_comparison<NumberWith<Lt>>("gt");
constexpr auto kGeNumber = number_comparison<NumberWith<Le>>("ge");
constexpr auto kIsInf = KernelTable<UnaryArgs>("isinf").everywhere<UnaryTestKernel<IsInf>, kFloatingTypes>();
constexpr auto kIsFinite =
    KernelTable<UnaryArgs>("isfinite").everywhere<UnaryTestKernel<IsFinite>, kFloatingTypes>();
constexpr auto kAnd = logic<LogicalAnd>("logical_and");
constexpr auto kOr = logic<LogicalOr>("logical_or");
constexpr auto kXor = logic<LogicalXor>("logical_xor");

Tensor compare(const KernelTable<BinaryArgs>& table, const Tensor& a, const Tensor& b, DType dtype) {
  ops::check_same_device(table.name(), {{"a", a}, {"b", b}});
  const Tensor x = a.dtype() == dtype ? a : a.to(dtype);
  const Tensor z = b.dtype() == dtype ? b : b.to(dtype);
  Tensor y = ops::binary_output(x, z, kBool, table.name());
  launch(table, dtype, ops::stream_of(y), BinaryArgs{x.arg(), z.arg(), y.arg(), {}});
  return y;
}
Tensor compare(const KernelTable<BinaryArgs>& table, const Tensor& a, const Tensor& b) {
  return compare(table, a, b, ops::result_type(table.name(), a, b));
}

// Whether an integer dtype holds the number; comparing with one it does not hold is done in int64.
bool holds(DType dtype, int64_t value) {
  if (dtype == kUInt8) return value >= 0 && value <= 255;
  if (dtype == kInt32)
    return value >= std::numeric_limits<int32_t>::min() && value <= std::numeric_limits<int32_t>::max();
  return true;
}

Tensor compare(const KernelTable<UnaryArgs>& table, const Tensor& a, Scalar b) {
  DType dtype = ops::result_type(table.name(), a, b);
  if (!b.is_floating_point() && !holds(dtype, b.to<int64_t>())) dtype = kInt64;
  const Tensor x = a.dtype() == dtype ? a : a.to(dtype);
  Tensor y = empty_like(x, kBool);
  launch(table, dtype, ops::stream_of(y), UnaryArgs{x.arg(), y.arg(), b, {}});
  return y;
}

Tensor test(const KernelTable<UnaryArgs>& table, const Tensor& x, bool of_integers) {
  ops::check_defined(table.name(), x);
  if (!x.is_floating_point()) return full(x.sizes(), of_integers, {.dtype = kBool, .device = x.device()});
  Tensor y = empty_like(x, kBool);
  launch(table, x.dtype(), ops::stream_of(y), UnaryArgs{x.arg(), y.arg(), {}, {}});
  return y;
}

void check_same_dtype(const char* op, const Tensor& a, const Tensor& b) {
  ops::check_same_device(op, {{"a", a}, {"b", b}});
  GRADUS_CHECK(a.dtype() == b.dtype(), "E-DTYPE", op, ": expected equal dtypes, got ", to_string(a.dtype()),
               " and ", to_string(b.dtype()), hint("convert one with .to(dtype)"));
}

bool none(const Tensor& mask) { return mask.sum().item<int64_t>() == 0; }

}  // namespace

Tensor eq(const Tensor& a, const Tensor& b) { return compare(kEq, a, b); }
Tensor ne(const Tensor& a, const Tensor& b) { return compare(kNe, a, b); }
Tensor lt(const Tensor& a, const Tensor& b) { return compare(kLt, a, b); }
Tensor le(const Tensor& a, const Tensor& b) { return compare(kLe, a, b); }
Tensor gt(const Tensor& a, const Tensor& b) { return compare(kGt, b, a); }
Tensor ge(const Tensor& a, const Tensor& b) { return compare(kGe, b, a); }
Tensor eq(const Tensor& a, Scalar b) { return compare(kEqNumber, a, b); }
Tensor ne(const Tensor& a, Scalar b) { return compare(kNeNumber, a, b); }
Tensor lt(const Tensor& a, Scalar b) { return compare(kLtNumber, a, b); }
Tensor le(const Tensor& a, Scalar b) { return compare(kLeNumber, a, b); }
Tensor gt(const Tensor& a, Scalar b) { return compare(kGtNumber, a, b); }
Tensor ge(const Tensor& a, Scalar b) { return compare(kGeNumber, a, b); }

Tensor isnan(const Tensor& x) {
  ops::check_defined("isnan", x);
  return ne(x, x);
}
Tensor isinf(const Tensor& x) { return test(kIsInf, x, false); }
Tensor isfinite(const Tensor& x) { return test(kIsFinite, x, true); }

Tensor logical_not(const Tensor& x) {
  ops::check_defined("logical_not", x);
  return eq(x, false);
}
Tensor logical_and(const Tensor& a, const Tensor& b) { return compare(kAnd, a, b, kBool); }
Tensor logical_or(const Tensor& a, const Tensor& b) { return compare(kOr, a, b, kBool); }
Tensor logical_xor(const Tensor& a, const Tensor& b) { return compare(kXor, a, b, kBool); }

Tensor isclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  check_same_dtype("isclose", a, b);
  GRADUS_CHECK(rtol >= 0 && atol >= 0, "E-ARG", "isclose: rtol and atol must be at least 0, got ", rtol,
               " and ", atol);
  NoGradGuard no_grad;
  const Tensor x = a.is_floating_point() ? a : a.to(kFloat64), z = x.is_same(a) ? b : b.to(kFloat64);
  const Tensor difference = abs(x - z);
  Tensor close = eq(a, b);
  close = logical_or(close, logical_and(isfinite(difference), difference <= abs(z * rtol) + atol));
  return equal_nan ? logical_or(close, logical_and(isnan(x), isnan(z))) : close;
}

bool allclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  return none(logical_not(isclose(a, b, rtol, atol, equal_nan)));
}

bool equal(const Tensor& a, const Tensor& b) {
  check_same_dtype("equal", a, b);
  return a.sizes() == b.sizes() && none(ne(a, b));
}

Tensor operator==(const Tensor& a, const Tensor& b) { return eq(a, b); }
Tensor operator!=(const Tensor& a, const Tensor& b) { return ne(a, b); }
Tensor operator<(const Tensor& a, const Tensor& b) { return lt(a, b); }
Tensor operator<=(const Tensor& a, const Tensor& b) { return le(a, b); }
Tensor operator>(const Tensor& a, const Tensor& b) { return gt(a, b); }
Tensor operator>=(const Tensor& a, const Tensor& b) { return ge(a, b); }
Tensor operator==(const Tensor& a, Scalar b) { return eq(a, b); }
Tensor operator!=(const Tensor& a, Scalar b) { return ne(a, b); }
Tensor operator<(const Tensor& a, Scalar b) { return lt(a, b); }
Tensor operator<=(const Tensor& a, Scalar b) { return le(a, b); }
Tensor operator>(const Tensor& a, Scalar b) { return gt(a, b); }
Tensor operator>=(const Tensor& a, Scalar b) { return ge(a, b); }
Tensor Tensor::eq(const Tensor& other) const { return gradus::eq(*this, other); }

}  // namespace gradus
