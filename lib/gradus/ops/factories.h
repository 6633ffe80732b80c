// Tensors with given contents. Names and arguments are PyTorch's.
#pragma once
#include <gradus/tensor/views.h>

#include <initializer_list>
#include <vector>

namespace gradus {

Tensor full(const Shape& sizes, Scalar value, const TensorOptions& options = {});
Tensor zeros(const Shape& sizes, const TensorOptions& options = {});
Tensor ones(const Shape& sizes, const TensorOptions& options = {});
Tensor full_like(const Tensor& like, Scalar value);
Tensor zeros_like(const Tensor& like);
Tensor ones_like(const Tensor& like);

/// The numbers start, start + step, … below end. int64 unless an argument or `options` says otherwise.
Tensor arange(Scalar end);
Tensor arange(Scalar start, Scalar end, Scalar step = 1);
Tensor arange(Scalar start, Scalar end, Scalar step, const TensorOptions& options);
/// `steps` numbers from start to end, both included.
Tensor linspace(double start, double end, int64_t steps, const TensorOptions& options = {});
Tensor eye(int64_t n, const TensorOptions& options = {});

/// A tensor of the given values: tensor({1.f, 2.f}) is 1-D float32, tensor(3.0) 0-dim float32, tensor({1, 2})
/// int64; `options` may ask for another dtype or device.
Tensor tensor(double value, const TensorOptions& options = {});
Tensor tensor(std::initializer_list<double> values, const TensorOptions& options = {});
Tensor tensor(std::initializer_list<std::initializer_list<double>> rows, const TensorOptions& options = {});
/// A copy of `values`, 1-D or of shape `sizes`, with the dtype of T.
template <class T>
Tensor tensor(const std::vector<T>& values, const Shape& sizes, const TensorOptions& options = {});
template <class T>
Tensor tensor(const std::vector<T>& values) {
  return tensor(values, Shape{static_cast<int64_t>(values.size())});
}
Tensor scalar_tensor(Scalar value, const TensorOptions& options);

}  // namespace gradus
