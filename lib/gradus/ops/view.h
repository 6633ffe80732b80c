// Views: other shapes of the same memory. All take any dtype, share storage and version counter with their
// input, and have gradients of every order. A dimension may be counted from the end; one that does not exist
// throws E-DIM. Each exists as a method of Tensor too.
#pragma once
#include <gradus/tensor/tensor.h>

#include <vector>

namespace gradus {

/// Another shape with as many elements in the same row-major order; one size may be -1. Throws E-SHAPE if the
/// counts differ, E-STRIDE if x's memory order does not allow it: reshape() then copies.
Tensor view(const Tensor& x, const Shape& sizes);
/// view() where it can be done, else view() of a contiguous copy.
Tensor reshape(const Tensor& x, const Shape& sizes);
/// Makes one dimension of start_dim … end_dim; in (N, C, H, W) order whatever the memory order is.
Tensor flatten(const Tensor& x, int64_t start_dim = 0, int64_t end_dim = -1);
Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1);
/// transpose(0, 1) of a matrix; tensors of fewer dimensions stay as they are, more throw E-SHAPE.
Tensor t(const Tensor& x);
/// Dimension i of the result is dimension dims[i] of x.
Tensor permute(const Tensor& x, const Shape& dims);
/// Repeats dimensions of size 1, and adds dimensions in front; -1 leaves a size as it is. No memory is used.
Tensor expand(const Tensor& x, const Shape& sizes);
/// Drops all dimensions of size 1, or dimension `dim` if it has size 1.
Tensor squeeze(const Tensor& x);
Tensor squeeze(const Tensor& x, int64_t dim);
/// A new dimension of size 1 before `dim`; -1 is behind the last one.
Tensor unsqueeze(const Tensor& x, int64_t dim);
/// Elements start … start + length - 1 of a dimension. Throws E-INDEX where they do not exist.
Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length);
/// Element `index` of a dimension, which disappears. Throws E-INDEX.
Tensor select(const Tensor& x, int64_t dim, int64_t index);
/// x[start:end:step] along a dimension, with Python's rules: bounds may be negative and are cut to the
/// dimension. Throws E-ARG unless step > 0.
Tensor slice(const Tensor& x, int64_t dim, int64_t start, int64_t end, int64_t step = 1);
/// At most `chunks` pieces of equal size, the last one smaller; of an empty dimension exactly `chunks` empty
/// ones, at most 2^20. Throws E-ARG.
std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int64_t dim = 0);
/// Pieces of `split_size`, the last one smaller; or of the given sizes, which sum up to the dimension (else
/// E-SHAPE).
std::vector<Tensor> split(const Tensor& x, int64_t split_size, int64_t dim = 0);
std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& sizes, int64_t dim = 0);
/// All select(dim, i).
std::vector<Tensor> unbind(const Tensor& x, int64_t dim = 0);

namespace detail {
/// Zeros of shape `sizes` where slice(dim, start, …, step) is g: the gradient of slice().
Tensor slice_backward(const Tensor& g, const Shape& sizes, int dim, int64_t start, int64_t step);
/// Strides for `sizes` over the memory of a tensor, if there are such.
std::optional<Shape> view_strides(const Tensor& x, const Shape& sizes);
}  // namespace detail

}  // namespace gradus
