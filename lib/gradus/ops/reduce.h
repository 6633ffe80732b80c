// Reductions. Names, argument order and results are PyTorch's.
//
// `dims` is a dimension or a list of them, counted from either end; none means all. A reduced dimension goes,
// or with keepdim stays with size 1. Half types are added up in float32 and rounded once; the order of the
// additions depends on shape and layout only, so that results are the same every run.
// Errors: E-DIM for a dimension out of range or given twice.
#pragma once
#include <gradus/tensor/tensor.h>

#include <concepts>

namespace gradus {

/// A list of dimensions, given as 1 or {0, 2}.
struct Dims : Shape {
  Dims() = default;
  template <std::integral T>
  explicit(false) Dims(T dim) : Shape{static_cast<int64_t>(dim)} {}
  explicit(false) Dims(std::initializer_list<int64_t> dims) : Shape(dims) {}
  explicit(false) Dims(const Shape& dims) : Shape(dims) {}
};

/// The sum; 0 of no elements. Integers and bools are added up in int64.
Tensor sum(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
/// The mean; NaN of no elements. Throws E-DTYPE for integers and bools.
Tensor mean(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
/// The product of all elements, or along one dimension; 1 of no elements. Integers and bools give int64.
Tensor prod(const Tensor& x);
Tensor prod(const Tensor& x, int64_t dim, bool keepdim = false);
/// How many elements are not 0, in int64; NaN is not 0.
Tensor count_nonzero(const Tensor& x, const Dims& dims = {});
/// Sums over what broadcasting has added: the gradient's way back from a broadcast shape to `sizes`.
/// Throws E-SHAPE unless `sizes` broadcasts to x.sizes().
Tensor sum_to_size(const Tensor& x, const Shape& sizes);

}  // namespace gradus
