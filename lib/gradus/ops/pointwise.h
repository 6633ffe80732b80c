// What the element-wise operations share: they differ in a kernel and in the rule of their derivative.
#pragma once
#include <gradus/ops/common.h>
#include <gradus/ops/reduce.h>

#include "kernels/elementwise.cuh"

namespace gradus::ops {

/// A table of a functor's kernel for `Types`.
template <class F, DTypeSet Types = kFloatingTypes>
constexpr KernelTable<UnaryArgs> unary_table(const char* name) {
  return KernelTable<UnaryArgs>(name).everywhere<UnaryKernel<F>, Types>();
}
template <class F, DTypeSet Types = kFloatingTypes>
constexpr KernelTable<BinaryArgs> binary_table(const char* name) {
  return KernelTable<BinaryArgs>(name).everywhere<BinaryKernel<F>, Types>();
}

/// The table with K for bools too. A bool is stored as a byte that is 0 or 1: uint8's kernel serves.
template <class K, class Args>
constexpr KernelTable<Args> with_bool(const KernelTable<Args>& table) {
  return table.host(dtypes(kBool), &K::template run<uint8_t>)
      .template cuda<&cuda_kernel<K, uint8_t, Args>>(dtypes(kBool));
}

/// dx, given dy and what was kept of the forward pass; p and q are the operation's numbers.
using UnaryRule = Tensor (*)(const Tensor& dy, const Tensor& kept, Scalar p, Scalar q);

/// What the rule needs.
enum class Keep { nothing, x, y };

struct UnaryBackward : Node {
  UnaryBackward(const char* name, Keep keep, UnaryRule rule, Scalar p, Scalar q)
      : name_(name), keep_(keep), rule_(rule), p_(p), q_(q) {}
  const char* name() const override { return name_; }
  TensorList backward(const TensorList& g) override {
    return {rule_(g[0], keep_ == Keep::nothing ? Tensor() : saved(0), p_, q_)};
  }

 private:
  const char* name_;
  Keep keep_;
  UnaryRule rule_;
  Scalar p_, q_;
};

/// y = kernel(x, p, q), in x's dtype.
inline Tensor run_unary(const KernelTable<UnaryArgs>& table, const Tensor& x, Scalar p = 0, Scalar q = 0) {
  check_defined(table.name(), x);
  Tensor y = empty_like(x);
  launch(table, x.dtype(), stream_of(y), UnaryArgs{x.arg(), y.arg(), p, q});
  return y;
}

/// The same, recorded where a gradient is wanted.
inline Tensor unary(const KernelTable<UnaryArgs>& table, const Tensor& x, const char* backward, Keep keep,
                    UnaryRule rule, Scalar p = 0, Scalar q = 0) {
  Tensor y = run_unary(table, x, p, q);
  if (wants_grad(x)) {
    UnaryBackward& node = record<UnaryBackward>(y, x, backward, keep, rule, p, q);
    if (keep != Keep::nothing) node.save(keep == Keep::x ? x : y);
  }
  return y;
}

/// The same in a floating dtype: integers and bools become float32.
inline Tensor floating_unary(const KernelTable<UnaryArgs>& table, const Tensor& x, const char* backward,
                             Keep keep, UnaryRule rule, Scalar p = 0, Scalar q = 0) {
  check_defined(table.name(), x);
  return unary(table, x.is_floating_point() ? x : x.to(kFloat32), backward, keep, rule, p, q);
}

/// y = kernel(a, b, p) of the operands broadcast and converted to `dtype`. They come back converted: what a
/// derivative keeps.
inline Tensor run_binary(const KernelTable<BinaryArgs>& table, Tensor& a, Tensor& b, DType dtype) {
  check_same_device(table.name(), {{"a", a}, {"b", b}});
  if (a.dtype() != dtype) a = a.to(dtype);
  if (b.dtype() != dtype) b = b.to(dtype);
  Tensor y = binary_output(a, b, dtype, table.name());
  launch(table, dtype, stream_of(y), BinaryArgs{a.arg(), b.arg(), y.arg(), {}});
  return y;
}

/// da and db, given dy and what was kept of the forward pass. The gradients are summed to the operands'
/// sizes afterwards.
using BinaryRule = TensorList (*)(const Tensor& dy, const Tensor& a, const Tensor& b);

struct BinaryBackward : Node {
  BinaryBackward(const char* name, BinaryRule rule, const Shape& a, const Shape& b)
      : name_(name), rule_(rule), a_sizes_(a), b_sizes_(b) {}
  const char* name() const override { return name_; }
  TensorList backward(const TensorList& g) override {
    const TensorList d = rule_(g[0], saved(0), saved(1));
    return {wants(0) ? sum_to_size(d[0], a_sizes_) : Tensor(),
            wants(1) ? sum_to_size(d[1], b_sizes_) : Tensor()};
  }

 private:
  const char* name_;
  BinaryRule rule_;
  Shape a_sizes_, b_sizes_;
};

/// run_binary(), recorded with a rule that needs both operands.
inline Tensor binary(const KernelTable<BinaryArgs>& table, Tensor a, Tensor b, DType dtype,
                     const char* backward, BinaryRule rule) {
  Tensor y = run_binary(table, a, b, dtype);
  if (wants_grad(a, b))
    record<BinaryBackward>(y, {a, b}, backward, rule, a.sizes(), b.sizes()).save(a).save(b);
  return y;
}

}  // namespace gradus::ops
