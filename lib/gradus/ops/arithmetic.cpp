#include "kernels/arithmetic.cuh"

#include <gradus/ops/arithmetic.h>
#include <gradus/ops/pointwise.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/unary.h>

namespace gradus {
namespace {

using namespace kernels;
using ops::binary_table;
using ops::result_type;
using ops::unary_table;

constexpr auto kAdd = binary_table<Add, kAllTypes>("add");
constexpr auto kSub = binary_table<Sub, kNumericTypes>("sub");
constexpr auto kMul = binary_table<Mul, kAllTypes>("mul");
constexpr auto kDiv = binary_table<Div>("div");
constexpr auto kAddNumber = unary_table<WithNumber<Add>, kAllTypes>("add");
constexpr auto kSubNumber = unary_table<WithNumber<Sub>, kNumericTypes>("sub");
constexpr auto kMulNumber = unary_table<WithNumber<Mul>, kAllTypes>("mul");
constexpr auto kDivNumber = unary_table<WithNumber<Div>>("div");
constexpr auto kSubFrom = unary_table<NumberWith<Sub>, kNumericTypes>("rsub");

struct AddBackward : Node {
  AddBackward(const Shape& a, const Shape& b) : a_sizes(a), b_sizes(b) {}
  const char* name() const override { return "AddBackward"; }
  TensorList backward(const TensorList& g) override {
    return {wants(0) ? sum_to_size(g[0], a_sizes) : Tensor(),
            wants(1) ? sum_to_size(g[0], b_sizes) : Tensor()};
  }
  Shape a_sizes, b_sizes;
};

struct SubBackward : Node {
  SubBackward(const Shape& a, const Shape& b) : a_sizes(a), b_sizes(b) {}
  const char* name() const override { return "SubBackward"; }
  TensorList backward(const TensorList& g) override {
    return {wants(0) ? sum_to_size(g[0], a_sizes) : Tensor(),
            wants(1) ? sum_to_size(neg(g[0]), b_sizes) : Tensor()};
  }
  Shape a_sizes, b_sizes;
};

// An operand is saved only where the other one's gradient needs it: x.mul_(w) is then free to overwrite x.
struct MulBackward : Node {
  MulBackward(const Shape& a, const Shape& b) : a_sizes(a), b_sizes(b) {}
  const char* name() const override { return "MulBackward"; }
  TensorList backward(const TensorList& g) override {
    return {wants(0) ? sum_to_size(g[0] * saved(1), a_sizes) : Tensor(),
            wants(1) ? sum_to_size(g[0] * saved(0), b_sizes) : Tensor()};
  }
  Shape a_sizes, b_sizes;
};

struct DivBackward : Node {
  DivBackward(const Shape& a, const Shape& b) : a_sizes(a), b_sizes(b) {}
  const char* name() const override { return "DivBackward"; }
  TensorList backward(const TensorList& g) override {
    const Tensor b = saved(1);
    const Tensor scaled = g[0] / b;
    return {wants(0) ? sum_to_size(scaled, a_sizes) : Tensor(),
            wants(1) ? sum_to_size(neg(scaled * (saved(0) / b)), b_sizes) : Tensor()};
  }
  Shape a_sizes, b_sizes;
};

// d(a * p) and, with p = -1, d(c - a).
struct ScaleBackward : Node {
  explicit ScaleBackward(const char* op, Scalar factor) : op_name(op), p(factor) {}
  const char* name() const override { return op_name; }
  TensorList backward(const TensorList& g) override { return {mul(g[0], p)}; }
  const char* op_name;
  Scalar p;
};
struct DivNumberBackward : Node {
  explicit DivNumberBackward(Scalar divisor) : p(divisor) {}
  const char* name() const override { return "DivBackward"; }
  TensorList backward(const TensorList& g) override { return {div(g[0], p)}; }
  Scalar p;
};
struct IdentityBackward : Node {
  explicit IdentityBackward(const char* op) : op_name(op) {}
  const char* name() const override { return op_name; }
  TensorList backward(const TensorList& g) override { return {g[0]}; }
  const char* op_name;
};

// run_binary() into `a`.
Tensor& binary_(const KernelTable<BinaryArgs>& table, Tensor& a, const Tensor& other, DType dtype) {
  const char* op = table.name();
  check_inplace(a, op, {&other, 1});
  ops::check_same_device(op, {{"a", a}, {"b", other}});
  GRADUS_CHECK(promote_types(a.dtype(), dtype) == a.dtype() ||
                   (is_floating_point(a.dtype()) && is_floating_point(dtype)),
               "E-DTYPE", op, "_: result type ", to_string(dtype),
               " can't be cast to the desired output type ", to_string(a.dtype()),
               hint("use the out-of-place operation"));
  const Shape sizes = broadcast_shapes(a.sizes(), other.sizes(), op);
  GRADUS_CHECK(sizes == a.sizes(), "E-SHAPE", op, "_: output with shape ", a.sizes(),
               " doesn't match the broadcast shape ", sizes, hint("use the out-of-place operation"));
  const Tensor b = ops::separate_from(other.dtype() == a.dtype() ? other : other.to(a.dtype()), a);
  launch(table, a.dtype(), ops::stream_of(a), BinaryArgs{a.arg(), b.arg(), a.arg(), {}});
  a.bump_version();
  return a;
}

void check_no_bool(DType a, DType b) {
  GRADUS_CHECK(a != kBool && b != kBool, "E-DTYPE",
               "sub: Subtraction, the `-` operator, with a bool tensor is not supported, got ", to_string(a),
               " and ", to_string(b),
               hint("invert a mask with logical_not(), compare two with logical_xor()"));
}

DType division_type(DType d) { return is_floating_point(d) ? d : DType::float32; }

// y = f(x, p) in the promoted dtype.
Tensor with_number(const KernelTable<UnaryArgs>& table, Tensor& x, Scalar p, DType dtype) {
  if (x.dtype() != dtype) x = x.to(dtype);
  Tensor y = empty_like(x);
  launch(table, dtype, ops::stream_of(y), UnaryArgs{x.arg(), y.arg(), p, {}});
  return y;
}

Tensor& with_number_(const KernelTable<UnaryArgs>& table, Tensor& x, Scalar p, DType dtype) {
  check_inplace(x, table.name());
  GRADUS_CHECK(dtype == x.dtype(), "E-DTYPE", table.name(), "_: result type ", to_string(dtype),
               " can't be cast to the desired output type ", to_string(x.dtype()),
               hint("use the out-of-place operation"));
  launch(table, dtype, ops::stream_of(x), UnaryArgs{x.arg(), x.arg(), p, {}});
  x.bump_version();
  return x;
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) {
  Tensor x = a, z = b;
  Tensor y = ops::run_binary(kAdd, x, z, result_type("add", a, b));
  if (wants_grad(x, z)) record<AddBackward>(y, {x, z}, x.sizes(), z.sizes());
  return y;
}

Tensor sub(const Tensor& a, const Tensor& b) {
  const DType dtype = result_type("sub", a, b);
  check_no_bool(a.dtype(), b.dtype());
  Tensor x = a, z = b;
  Tensor y = ops::run_binary(kSub, x, z, dtype);
  if (wants_grad(x, z)) record<SubBackward>(y, {x, z}, x.sizes(), z.sizes());
  return y;
}

Tensor mul(const Tensor& a, const Tensor& b) {
  Tensor x = a, z = b;
  Tensor y = ops::run_binary(kMul, x, z, result_type("mul", a, b));
  if (wants_grad(x, z)) {
    record<MulBackward>(y, {x, z}, x.sizes(), z.sizes())
        .save(z.requires_grad() ? x : Tensor())
        .save(x.requires_grad() ? z : Tensor());
  }
  return y;
}

Tensor div(const Tensor& a, const Tensor& b) {
  Tensor x = a, z = b;
  Tensor y = ops::run_binary(kDiv, x, z, division_type(result_type("div", a, b)));
  if (wants_grad(x, z))
    record<DivBackward>(y, {x, z}, x.sizes(), z.sizes()).save(z.requires_grad() ? x : Tensor()).save(z);
  return y;
}

Tensor add(const Tensor& a, Scalar b) {
  Tensor x = a;
  Tensor y = with_number(kAddNumber, x, b, result_type("add", a, b));
  if (wants_grad(x)) record<IdentityBackward>(y, x, "AddBackward");
  return y;
}

Tensor sub(const Tensor& a, Scalar b) {
  const DType dtype = result_type("sub", a, b);
  check_no_bool(a.dtype(), b.kind());
  Tensor x = a;
  Tensor y = with_number(kSubNumber, x, b, dtype);
  if (wants_grad(x)) record<IdentityBackward>(y, x, "SubBackward");
  return y;
}

Tensor rsub(const Tensor& a, Scalar b) {
  const DType dtype = result_type("rsub", a, b);
  check_no_bool(a.dtype(), b.kind());
  Tensor x = a;
  Tensor y = with_number(kSubFrom, x, b, dtype);
  if (wants_grad(x)) record<ScaleBackward>(y, x, "RsubBackward", Scalar(-1));
  return y;
}

Tensor mul(const Tensor& a, Scalar b) {
  Tensor x = a;
  Tensor y = with_number(kMulNumber, x, b, result_type("mul", a, b));
  if (wants_grad(x)) record<ScaleBackward>(y, x, "MulBackward", b);
  return y;
}

Tensor div(const Tensor& a, Scalar b) {
  Tensor x = a;
  Tensor y = with_number(kDivNumber, x, b, division_type(result_type("div", a, b)));
  if (wants_grad(x)) record<DivNumberBackward>(y, x, b);
  return y;
}

// In place. With a history to keep, the result is computed out of place, which saves what its derivative
// needs, and then moved in; see ops::assign().
Tensor& Tensor::add_(const Tensor& other) {
  if (wants_grad(*this, other)) return ops::assign(*this, gradus::add(*this, other), "add", {&other, 1});
  return binary_(kAdd, *this, other, result_type("add", *this, other));
}
Tensor& Tensor::sub_(const Tensor& other) {
  const DType result = result_type("sub", *this, other);
  check_no_bool(dtype(), other.dtype());
  if (wants_grad(*this, other)) return ops::assign(*this, gradus::sub(*this, other), "sub", {&other, 1});
  return binary_(kSub, *this, other, result);
}
Tensor& Tensor::mul_(const Tensor& other) {
  if (wants_grad(*this, other)) return ops::assign(*this, gradus::mul(*this, other), "mul", {&other, 1});
  return binary_(kMul, *this, other, result_type("mul", *this, other));
}
Tensor& Tensor::div_(const Tensor& other) {
  if (wants_grad(*this, other)) return ops::assign(*this, gradus::div(*this, other), "div", {&other, 1});
  return binary_(kDiv, *this, other, division_type(result_type("div", *this, other)));
}
Tensor& Tensor::add_(Scalar other) {
  if (wants_grad(*this)) return ops::assign(*this, gradus::add(*this, other), "add");
  return with_number_(kAddNumber, *this, other, result_type("add", *this, other));
}
Tensor& Tensor::sub_(Scalar other) {
  const DType result = result_type("sub", *this, other);
  check_no_bool(dtype(), other.kind());
  if (wants_grad(*this)) return ops::assign(*this, gradus::sub(*this, other), "sub");
  return with_number_(kSubNumber, *this, other, result);
}
Tensor& Tensor::mul_(Scalar other) {
  if (wants_grad(*this)) return ops::assign(*this, gradus::mul(*this, other), "mul");
  return with_number_(kMulNumber, *this, other, result_type("mul", *this, other));
}
Tensor& Tensor::div_(Scalar other) {
  if (wants_grad(*this)) return ops::assign(*this, gradus::div(*this, other), "div");
  return with_number_(kDivNumber, *this, other, division_type(result_type("div", *this, other)));
}

Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
Tensor operator+(const Tensor& a, Scalar b) { return add(a, b); }
Tensor operator-(const Tensor& a, Scalar b) { return sub(a, b); }
Tensor operator*(const Tensor& a, Scalar b) { return mul(a, b); }
Tensor operator/(const Tensor& a, Scalar b) { return div(a, b); }
Tensor operator+(Scalar a, const Tensor& b) { return add(b, a); }
Tensor operator-(Scalar a, const Tensor& b) { return rsub(b, a); }
Tensor operator*(Scalar a, const Tensor& b) { return mul(b, a); }
Tensor operator/(Scalar a, const Tensor& b) { return mul(reciprocal(b), a); }
Tensor Tensor::add(const Tensor& other) const { return gradus::add(*this, other); }
Tensor Tensor::sub(const Tensor& other) const { return gradus::sub(*this, other); }
Tensor Tensor::mul(const Tensor& other) const { return gradus::mul(*this, other); }
Tensor Tensor::div(const Tensor& other) const { return gradus::div(*this, other); }

}  // namespace gradus
