// A number that is a double, an int64 or a bool: what an operation takes where PyTorch takes a Python number.
#pragma once
#include <gradus/base/dtype.h>

#include <concepts>
#include <cstdint>

namespace gradus {

class Scalar {
 public:
  Scalar() : Scalar(0) {}
  template <std::floating_point T>
  explicit(false) Scalar(T value) : kind_(DType::float64), double_(static_cast<double>(value)) {}
  template <std::integral T>
  explicit(false) Scalar(T value)
      : kind_(std::same_as<T, bool> ? DType::boolean : DType::int64), int_(static_cast<int64_t>(value)) {}

  /// float64, int64 or boolean: the kind of number that was given.
  DType kind() const { return kind_; }
  bool is_floating_point() const { return kind_ == DType::float64; }
  template <class T>
  T to() const {
    return is_floating_point() ? static_cast<T>(double_) : static_cast<T>(int_);
  }

 private:
  DType kind_;
  union {
    double double_;
    int64_t int_;
  };
};

/// The dtype of an operation on a tensor of dtype `t` and a number: the tensor's, unless the number is of a
/// higher category (int64 tensor with 0.5 gives float32, bool with 2 gives int64).
inline DType promote_with_scalar(DType t, DType scalar_kind) {
  if (scalar_kind == DType::float64) return is_floating_point(t) ? t : DType::float32;
  if (scalar_kind == DType::int64) return t == DType::boolean ? DType::int64 : t;
  return t;
}

}  // namespace gradus
