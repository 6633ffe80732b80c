// What the reduction operations share; not for users.
#pragma once
#include <gradus/ops/reduce.h>
#include <gradus/runtime/kernel_table.h>
#include <gradus/tensor/node.h>

#include <algorithm>

namespace gradus {

struct ReduceArgs;

namespace ops {

/// Shapes of a reduction: the result's, and the same with reduced dimensions kept as 1.
struct ReducedShapes {
  Shape out, kept;
};
/// Throws E-DIM for a dimension out of range or given twice.
ReducedShapes reduced_shapes(const Tensor& x, const Dims& dims, bool keepdim, const char* op);

/// x reduced into a new tensor of `dtype`.
Tensor reduce(const KernelTable<ReduceArgs>& table, const Tensor& x, const ReducedShapes& shapes,
              DType dtype);

/// Throws E-SHAPE where a result is made of no elements, for operations that have none for that.
void check_not_empty(const Tensor& x, const ReducedShapes& shapes, const char* op);

/// The dimensions that a reduction to `kept` goes over: those of size 1.
Dims reduced_dims(const Shape& kept);

/// A Node of a reduction: knows the shape of the result with reduced dimensions kept, and x's.
struct ReductionNode : Node {
  ReductionNode(const Shape& kept_sizes, const Shape& x_sizes) : kept(kept_sizes), sizes(x_sizes) {}
  /// `t`, of the result's shape, repeated for each element that went into it.
  Tensor expand(const Tensor& t) const { return (t.dim() == 0 ? t : t.reshape(kept)).expand(sizes); }
  /// `found`, ones and zeros of x's sizes, each divided by how many ones went into the same element of the
  /// result.
  Tensor share(const Tensor& found) const;
  /// How many elements went into one of the result.
  double count() const {
    return static_cast<double>(sizes.numel()) / static_cast<double>(std::max<int64_t>(kept.numel(), 1));
  }
  Shape kept, sizes;
};

}  // namespace ops
}  // namespace gradus
