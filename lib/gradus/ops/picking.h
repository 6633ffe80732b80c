// The two operations under all indexing, for gradus/ops/index.cpp and brackets.cpp; see kernels/pick.cuh.
#pragma once
#include <gradus/tensor/tensor.h>

namespace gradus::detail {

/// How an int64 index tensor selects along dimension `dim`. gather: element by element, index has x's
/// dimensions. Else its dimensions take the place of `dim`.
struct Along {
  const char* op;
  int dim;
  bool gather;
  bool negative = false;  // may indices count from the end?
};

/// Reads x at index. Gradient: put_into_zeros().
Tensor pick(const Tensor& x, const Along& along, const Tensor& index);
/// Zeros of shape `sizes`, with g added at index. Half types are summed in float32. Gradient: pick().
Tensor put_into_zeros(const Tensor& g, const Along& along, const Tensor& index, const Shape& sizes);
/// A copy of x with values written (or added) at index.
Tensor put(const Tensor& x, const Along& along, const Tensor& index, const Tensor& values, bool accumulate);
/// The same into x, without checks, history or version.
void put_(const Tensor& x, const Along& along, const Tensor& index, const Tensor& values, bool accumulate);
/// The shape of what pick() gives.
Shape picked_sizes(const Shape& x, const Along& along, const Shape& index);
/// before * size + index: one index for several dimensions flattened to one. `before` may be undefined.
Tensor linear_index(const Tensor& before, const Tensor& index, int64_t size, int dim, const char* op);

}  // namespace gradus::detail
