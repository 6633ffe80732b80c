// What the operations on one tensor share: they differ in a kernel and in the rule of their derivative.
#pragma once
#include <gradus/ops/common.h>

#include "kernels/elementwise.cuh"

namespace gradus::ops {

/// dx, given dy and what was kept of the forward pass; p and q are the operation's numbers.
using UnaryRule = Tensor (*)(const Tensor& dy, const Tensor& kept, Scalar p, Scalar q);

/// What the rule needs.
enum class Keep { nothing, x, y };

struct UnaryBackward : Node {
  UnaryBackward(const char* name, UnaryRule derivative, Scalar first, Scalar second)
      : name_(name), rule_(derivative), p_(first), q_(second) {}
  const char* name() const override { return name_; }
  TensorList backward(const TensorList& g) override { return {rule_(g[0], saved(0), p_, q_)}; }

 private:
  const char* name_;
  UnaryRule rule_;
  Scalar p_, q_;
};

/// y = kernel(x, p, q), in x's dtype.
inline Tensor run_unary(const KernelTable<UnaryArgs>& table, const Tensor& x, Scalar p = 0, Scalar q = 0) {
  Tensor y = empty_like(x);
  launch(table, x.dtype(), stream_of(y), UnaryArgs{x.arg(), y.arg(), p, q});
  return y;
}

/// The same, recorded where a gradient is wanted.
inline Tensor unary(const KernelTable<UnaryArgs>& table, const Tensor& x, const char* backward, Keep keep,
                    UnaryRule rule, Scalar p = 0, Scalar q = 0) {
  Tensor y = run_unary(table, x, p, q);
  if (wants_grad(x)) {
    record<UnaryBackward>(y, x, backward, rule, p, q)
        .save(keep == Keep::x   ? x
              : keep == Keep::y ? y
                                : Tensor());
  }
  return y;
}

/// x in a floating dtype: integers and bools become float32.
inline Tensor as_floating(const Tensor& x) { return x.is_floating_point() ? x : x.to(kFloat32); }

}  // namespace gradus::ops
