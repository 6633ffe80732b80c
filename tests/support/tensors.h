// Small tensors for tests of files.
#pragma once
#include <gradus/tensor/views.h>

#include <algorithm>
#include <initializer_list>
#include <string>

namespace gradus::testing {

template <class T>
Tensor make(const Shape& sizes, std::initializer_list<T> values) {
  Tensor tensor = empty(sizes, dtype_of<T>());
  std::copy(values.begin(), values.end(), tensor.data<T>());
  return tensor;
}

/// 0, 1, … n - 1 as float32.
inline Tensor iota(int64_t n) {
  Tensor tensor = empty({n}, kFloat32);
  for (int64_t i = 0; i < n; ++i) tensor.data<float>()[i] = static_cast<float>(i);
  return tensor;
}

/// A tensor that says it is on a sim device, whether there is one or not: for checks that come before any
/// access.
inline Tensor elsewhere() {
  static float memory[1];
  Intrusive<detail::TensorImpl> impl(new detail::TensorImpl);
  impl->storage = Intrusive<Storage>(new Storage(memory, sizeof memory, Device(DeviceType::sim), {}));
  impl->sizes = impl->strides = Shape{1};
  return Tensor(impl);
}

/// The bytes of a contiguous tensor.
inline std::string bytes_of(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.raw_data()), tensor.nbytes()};
}

}  // namespace gradus::testing
