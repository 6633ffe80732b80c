// Picking and writing elements by index. Index tensors are int64 (other integer types are converted) on the
// same device. An index out of range throws E-INDEX naming the operation, the index and the bound, before
// anything is written. Where an index occurs twice, values are written, and gradients summed, in a fixed
// order. Gradients of every order.
#pragma once
#include <gradus/tensor/tensor.h>
#include <gradus/tensor/tensor_index.h>

#include <optional>

namespace gradus {

/// Elements index[i] of dimension dim; index is 0-dim or 1-D and may not be negative.
Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index);
/// y[i][j] = x[index[i][j]][j] for dim 0, and so on; y has index's shape, which may not exceed x's in the
/// other dimensions (E-SHAPE).
Tensor gather(const Tensor& x, int64_t dim, const Tensor& index);
/// gather() with index broadcast to x's shape in the other dimensions, as NumPy's.
Tensor take_along_dim(const Tensor& x, const Tensor& index, int64_t dim);
/// A copy of x with y[index[i][j]][j] = src[i][j] for dim 0, and so on: the inverse of gather().
Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src);
Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, Scalar value);
/// The same with += in place of =.
Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src);
/// A copy of x with source[i] added to x[index[i]] along dim; index is 1-D.
Tensor index_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source);

/// x[…] as in Python: x.index({0, Slice(1, 5), None, "...", tensor, mask}). Numbers and slices give a view,
/// index tensors and bool masks a copy; negative indices count from the end.
Tensor index(const Tensor& x, std::span<const TensorIndex> indices);
/// x[…] = values in place; values broadcast. accumulate: +=, and an index that occurs twice counts twice.
Tensor& index_put_(Tensor& x, std::span<const TensorIndex> indices, const Tensor& values,
                   bool accumulate = false);

/// The elements where mask, which broadcasts with x, is true, as a 1-D tensor. Waits for the device.
Tensor masked_select(const Tensor& x, const Tensor& mask);
/// The indices of all elements that are not 0: shape (count, x.dim()), int64. Waits for the device.
Tensor nonzero(const Tensor& x);
/// int64 of shape (*index.shape, num_classes), 1 at the index, else 0. num_classes -1: the largest index plus
/// one.
Tensor one_hot(const Tensor& index, int64_t num_classes = -1);
/// Rows of weight (vocabulary, width): shape (*index.shape, width). Row padding_idx gets no gradient.
Tensor embedding(const Tensor& weight, const Tensor& index, std::optional<int64_t> padding_idx = {});

}  // namespace gradus
