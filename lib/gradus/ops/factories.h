// Tensors with given contents. Names and arguments are PyTorch's.
#pragma once
#include <gradus/tensor/views.h>

#include <algorithm>
#include <concepts>
#include <initializer_list>
#include <vector>

namespace gradus {

/// The dtype is the number's kind, as in PyTorch: full({2}, 1) is int64, full({2}, 1.0) float32.
Tensor full(const Shape& sizes, Scalar value, const TensorOptions& options = {});
Tensor zeros(const Shape& sizes, const TensorOptions& options = {});
Tensor ones(const Shape& sizes, const TensorOptions& options = {});
inline Tensor zeros(const Shape& sizes, DType dtype, Device device = {}) {
  return zeros(sizes, {.dtype = dtype, .device = device});
}
inline Tensor ones(const Shape& sizes, DType dtype, Device device = {}) {
  return ones(sizes, {.dtype = dtype, .device = device});
}
/// With the sizes, dtype, device and memory order of `like`.
Tensor full_like(const Tensor& like, Scalar value);
Tensor zeros_like(const Tensor& like);
Tensor ones_like(const Tensor& like);

/// The numbers start, start + step, … before end: int64 where all three are whole numbers, else float32,
/// unless `options` says otherwise. Throws E-ARG for a step of 0 or one that leads away from end.
Tensor arange(Scalar end, const TensorOptions& options = {});
Tensor arange(Scalar start, Scalar end, Scalar step = 1, const TensorOptions& options = {});
/// `steps` numbers from start to end, both included.
Tensor linspace(double start, double end, int64_t steps, const TensorOptions& options = {});
/// The n x n matrix with ones on its diagonal.
Tensor eye(int64_t n, const TensorOptions& options = {});
/// 0-dim, of the number's kind unless `options` has a dtype.
Tensor scalar_tensor(Scalar value, const TensorOptions& options = {});

template <class T>
concept Number = std::integral<T> || std::floating_point<T>;

namespace detail {
// What every factory begins and ends with: a new tensor of `options`, of `dtype` unless they have one; and,
// once it is filled, the requires_grad that they ask for.
Tensor make(const Shape& sizes, DType dtype, const TensorOptions& options);
Tensor finish(Tensor t, const TensorOptions& options);

// What a literal is kept as until its dtype is settled, and the dtype it has if nothing else is asked for.
template <Number T>
using Literal =
    std::conditional_t<std::same_as<T, bool>, bool, std::conditional_t<std::integral<T>, int64_t, double>>;
template <Number T>
constexpr DType literal_dtype() {
  return std::floating_point<T> ? DType::float32 : dtype_of<Literal<T>>();
}
void check_literal(int64_t got, const Shape& sizes);
void check_row(size_t got, size_t expected);
Tensor finish_literal(const Tensor& values, DType dtype, const TensorOptions& options);
}  // namespace detail

/// A tensor of the given values: tensor({1.f, 2.f}) and tensor({1.0, 2.0}) are 1-D float32, tensor({1, 2}) is
/// int64, tensor({true}) bool, tensor(3.0) 0-dim, tensor({{1, 2}, {3, 4}}) 2-D (rows of unequal length:
/// E-SHAPE). `options` may ask for another dtype or device.
template <Number T>
Tensor tensor(T value, const TensorOptions& options = {}) {
  return scalar_tensor(value, options);
}
template <Number T>
Tensor tensor(std::initializer_list<T> values, const TensorOptions& options = {}) {
  using L = detail::Literal<T>;
  Tensor t = empty({static_cast<int64_t>(values.size())}, dtype_of<L>());
  std::copy(values.begin(), values.end(), static_cast<L*>(t.raw_data()));
  return detail::finish_literal(t, detail::literal_dtype<T>(), options);
}
template <Number T>
Tensor tensor(std::initializer_list<std::initializer_list<T>> rows, const TensorOptions& options = {}) {
  using L = detail::Literal<T>;
  const size_t columns = rows.size() ? rows.begin()->size() : 0;
  Tensor t = empty({static_cast<int64_t>(rows.size()), static_cast<int64_t>(columns)}, dtype_of<L>());
  L* out = static_cast<L*>(t.raw_data());
  for (const auto& row : rows) {
    detail::check_row(row.size(), columns);
    out = std::copy(row.begin(), row.end(), out);
  }
  return detail::finish_literal(t, detail::literal_dtype<T>(), options);
}
/// A copy of `values` of shape `sizes` (their product must be values.size(), else E-SHAPE), with the dtype of
/// T unless `options` has one.
template <class T>
Tensor tensor(const std::vector<T>& values, const Shape& sizes, const TensorOptions& options = {}) {
  detail::check_literal(static_cast<int64_t>(values.size()), sizes);
  Tensor t = empty(sizes, dtype_of<T>());
  std::copy(values.begin(), values.end(), static_cast<T*>(t.raw_data()));
  return detail::finish_literal(t, dtype_of<T>(), options);
}
/// The same, 1-D.
template <class T>
Tensor tensor(const std::vector<T>& values, const TensorOptions& options = {}) {
  return tensor(values, Shape{static_cast<int64_t>(values.size())}, options);
}

}  // namespace gradus
