// From the number of an element to where it lies, in tensors of any size and strides. (nest.cuh does the same
// in 32 bits, several elements at a time.)
#pragma once
#include <kernels/blocks/nest.cuh>

namespace gradus::kernels {

/// Divides numbers of any size by one that is known at launch: fast below 2^31.
class WideDivisor {
 public:
  WideDivisor() = default;
  explicit WideDivisor(int64_t d) : value_(d) {
    if (d > 0 && d < kSmall) small_ = Divisor(static_cast<uint32_t>(d));
  }
  GRADUS_HD int64_t value() const { return value_; }
  /// n / value(), n >= 0.
  GRADUS_HD int64_t divide(int64_t n) const {
    return n < kSmall ? divide_small(static_cast<uint32_t>(n)) : n / value_;
  }
  /// The same of n < 2^31.
  GRADUS_HD uint32_t divide_small(uint32_t n) const { return value_ < kSmall ? small_.divide(n) : 0; }

  static constexpr int64_t kSmall = int64_t{1} << 31;

 private:
  int64_t value_ = 1;
  Divisor small_{1};
};

/// Where an element lies in two tensors, in elements.
struct Offsets {
  int64_t x, y;
};

/// Dimensions, innermost last, and their strides in two tensors. At least one.
struct LoopDims {
  int count = 0;
  WideDivisor size[kMaxDims];
  int64_t x[kMaxDims], y[kMaxDims];

  void push_back(int64_t n, int64_t x_stride, int64_t y_stride) {
    size[count] = WideDivisor(n), x[count] = x_stride, y[count] = y_stride;
    ++count;
  }
  int64_t numel() const {
    int64_t n = 1;
    for (int d = 0; d < count; ++d) n *= size[d].value();
    return n;
  }
  /// Of element i, counted with the innermost dimension fastest.
  GRADUS_HD Offsets at(int64_t i) const {
    Offsets at{0, 0};
    for (int d = count - 1; d > 0; --d) {
      const int64_t rest = size[d].divide(i), index = i - rest * size[d].value();
      at.x += index * x[d], at.y += index * y[d];
      i = rest;
    }
    return {at.x + i * x[0], at.y + i * y[0]};
  }
  /// The same of an i < 2^31, in x only: a fraction of the code.
  GRADUS_HD int64_t x_of_small(uint32_t i) const {
    int64_t at = 0;
    GRADUS_NO_UNROLL
    for (int d = count - 1; d > 0; --d) {
      const uint32_t rest = size[d].divide_small(i);
      at += static_cast<int64_t>(i - rest * static_cast<uint32_t>(size[d].value())) * x[d];
      i = rest;
    }
    return at + static_cast<int64_t>(i) * x[0];
  }
};

}  // namespace gradus::kernels
