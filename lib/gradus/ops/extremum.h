// The largest and the smallest. `dims` and keepdim as in reduce.h. A NaN is larger and smaller than any
// number; of equal elements the first is found. Reducing over no elements throws E-SHAPE.
#pragma once
#include <gradus/ops/reduce.h>

#include <tuple>

namespace gradus {

/// The largest or smallest element; its gradient is shared evenly among equal ones.
Tensor amax(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
Tensor amin(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
Tensor max(const Tensor& x);
Tensor min(const Tensor& x);

/// Along one dimension: (values, indices). The gradient goes to the element found; the indices are int64.
std::tuple<Tensor, Tensor> max(const Tensor& x, int64_t dim, bool keepdim = false);
std::tuple<Tensor, Tensor> min(const Tensor& x, int64_t dim, bool keepdim = false);

/// The position of the largest or smallest element along `dim`, or in row-major order over all; int64.
Tensor argmax(const Tensor& x);
Tensor argmax(const Tensor& x, int64_t dim, bool keepdim = false);
Tensor argmin(const Tensor& x);
Tensor argmin(const Tensor& x, int64_t dim, bool keepdim = false);

/// Whether all elements, or any, differ from 0, as bool; of no elements true and false.
Tensor all(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
Tensor any(const Tensor& x, const Dims& dims = {}, bool keepdim = false);

}  // namespace gradus
