#include "kernels/where.cuh"

#include <gradus/ops/arithmetic.h>
#include <gradus/ops/common.h>
#include <gradus/ops/compare.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/where.h>

namespace gradus {
namespace {

constexpr auto kWhere = KernelTable<WhereArgs>("where")
                            .host(kAllTypes, &kernels::where_host)
                            .cuda<&kernels::where_cuda>(kAllTypes);
constexpr auto kMaskedFill = KernelTable<MaskedFillArgs>("masked_fill")
                                 .host(kAllTypes, &kernels::masked_fill_host)
                                 .cuda<&kernels::masked_fill_cuda>(kAllTypes);

void check_mask(const Tensor& mask, const char* op, const char* name) {
  GRADUS_CHECK(mask.dtype() == kBool, "E-DTYPE", op, ": expected ", name, " to be bool, got ",
               to_string(mask.dtype()), hint("compare it: ", name, " != 0"));
}

struct WhereBackward : Node {
  WhereBackward(const Shape& a, const Shape& b) : a_sizes(a), b_sizes(b) {}
  const char* name() const override { return "WhereBackward"; }
  TensorList backward(const TensorList& g) override {
    const Tensor condition = saved(0);
    return {wants(0) ? sum_to_size(masked_fill(g[0], logical_not(condition), 0), a_sizes) : Tensor(),
            wants(1) ? sum_to_size(masked_fill(g[0], condition, 0), b_sizes) : Tensor()};
  }
  Shape a_sizes, b_sizes;
};

struct MaskedFillBackward : Node {
  explicit MaskedFillBackward(const Shape& x) : sizes(x) {}
  const char* name() const override { return "MaskedFillBackward"; }
  TensorList backward(const TensorList& g) override {
    return {sum_to_size(masked_fill(g[0], saved(0), 0), sizes)};
  }
  Shape sizes;
};

// A number beside a tensor of x's dtype.
Tensor beside(const Tensor& x, Scalar number) {
  return scalar_tensor(number, {.dtype = ops::result_type("where", x, number), .device = x.device()});
}

void check_floating(const char* op, const Tensor& start, const Tensor& end) {
  ops::check_same_device(op, {{"start", start}, {"end", end}});
  GRADUS_CHECK(start.is_floating_point() && start.dtype() == end.dtype(), "E-DTYPE", op,
               ": expected equal floating dtypes, got ", to_string(start.dtype()), " and ",
               to_string(end.dtype()), hint("convert them with .to(dtype)"));
}

}  // namespace

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  ops::check_same_device("where", {{"condition", condition}, {"a", a}, {"b", b}});
  check_mask(condition, "where", "condition");
  const DType dtype = ops::result_type("where", a, b);
  const Tensor x = a.to(dtype), z = b.to(dtype);
  // The output is laid out like the operand that has its shape.
  Tensor y = ops::binary_output(x, z, dtype, "where");
  if (y.sizes() != condition.sizes()) y = ops::binary_output(y, condition, dtype, "where");
  launch(kWhere, dtype, ops::stream_of(y), WhereArgs{condition.arg(), x.arg(), z.arg(), y.arg()});
  if (wants_grad(x, z)) record<WhereBackward>(y, {x, z}, x.sizes(), z.sizes()).save(condition);
  return y;
}
Tensor where(const Tensor& condition, const Tensor& a, Scalar b) { return where(condition, a, beside(a, b)); }
Tensor where(const Tensor& condition, Scalar a, const Tensor& b) { return where(condition, beside(b, a), b); }

Tensor masked_fill(const Tensor& x, const Tensor& mask, Scalar value) {
  ops::check_same_device("masked_fill", {{"x", x}, {"mask", mask}});
  check_mask(mask, "masked_fill", "mask");
  Tensor y = ops::binary_output(x, mask, x.dtype(), "masked_fill");
  launch(kMaskedFill, x.dtype(), ops::stream_of(y),
         MaskedFillArgs{x.arg(), mask.arg(), y.arg(), kernels::scalar_bits(value, x.dtype())});
  if (wants_grad(x)) record<MaskedFillBackward>(y, x, x.sizes()).save(mask);
  return y;
}
Tensor Tensor::masked_fill(const Tensor& mask, Scalar value) const {
  return gradus::masked_fill(*this, mask, value);
}

Tensor lerp(const Tensor& start, const Tensor& end, Scalar weight) {
  check_floating("lerp", start, end);
  return start + (end - start) * weight;
}
Tensor lerp(const Tensor& start, const Tensor& end, const Tensor& weight) {
  check_floating("lerp", start, end);
  ops::check_defined("lerp", weight, "weight");
  check_floating("lerp", start, weight);
  return start + (end - start) * weight;
}

Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, Scalar value) {
  ops::check_same_device("addcmul", {{"x", x}, {"a", a}, {"b", b}});
  return x + a * b * value;
}

}  // namespace gradus
