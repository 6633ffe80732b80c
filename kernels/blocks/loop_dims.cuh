// From the number of an element to where it lies, in tensors of any strides.
#pragma once
#include <gradus/base/macros.h>
#include <gradus/base/shape.h>

#include <cstdint>

namespace gradus::kernels {

/// Division by a number that is known at launch. A GPU has no instruction for it, and 64 bits take it a
/// hundred; below 2^31 a multiplication and a shift do.
class Divider {
 public:
  Divider() = default;
  explicit Divider(int64_t divisor) : divisor_(divisor) {
    while (shift_ < 31 && int64_t{1} << shift_ < divisor) ++shift_;
    const int64_t above = (int64_t{1} << shift_) - divisor;
    if (above > 0 && divisor > 0) factor_ = static_cast<uint32_t>((above << 32) / divisor + 1);
  }

  GRADUS_HD int64_t divisor() const { return divisor_; }
  /// n / divisor, n >= 0.
  GRADUS_HD int64_t operator()(int64_t n) const {
    if (n >= kSmall) return n / divisor_;
    const uint32_t low = static_cast<uint32_t>(n);
    const uint32_t high = static_cast<uint32_t>(static_cast<uint64_t>(low) * factor_ >> 32);
    return (high + low) >> shift_;
  }

 private:
  static constexpr int64_t kSmall = int64_t{1} << 31;
  int64_t divisor_ = 1;
  uint32_t factor_ = 0, shift_ = 0;
};

/// Where an element lies in two tensors, in elements.
struct Offsets {
  int64_t x, y;
};

/// Dimensions, innermost last, and their strides in two tensors. At least one.
struct LoopDims {
  int count = 0;
  Divider size[kMaxDims];
  int64_t x[kMaxDims], y[kMaxDims];

  void push_back(int64_t n, int64_t x_stride, int64_t y_stride) {
    size[count] = Divider(n), x[count] = x_stride, y[count] = y_stride;
    ++count;
  }
  int64_t numel() const {
    int64_t n = 1;
    for (int d = 0; d < count; ++d) n *= size[d].divisor();
    return n;
  }
  /// Of element i, counted with the innermost dimension fastest.
  GRADUS_HD Offsets at(int64_t i) const {
    Offsets at{0, 0};
    for (int d = count - 1; d > 0; --d) {
      const int64_t rest = size[d](i), index = i - rest * size[d].divisor();
      at.x += index * x[d], at.y += index * y[d];
      i = rest;
    }
    return {at.x + i * x[0], at.y + i * y[0]};
  }
};

}  // namespace gradus::kernels
