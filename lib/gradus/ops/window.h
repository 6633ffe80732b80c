// Sizes in two directions and the sliding-window arithmetic that convolution and pooling share.
#pragma once
#include <gradus/base/shape.h>

namespace gradus {

/// (height, width); one number stands for both.
struct Size2 {
  int64_t h = 0, w = 0;
  constexpr Size2() = default;
  constexpr Size2(int64_t both) : h(both), w(both) {}
  constexpr Size2(int64_t height, int64_t width) : h(height), w(width) {}
  int64_t operator[](int axis) const { return axis == 0 ? h : w; }
  friend bool operator==(const Size2&, const Size2&) = default;
};
std::string to_string(const Size2& s);

namespace ops {

/// Windows that fit: floor((size + 2 padding - dilation (kernel - 1) - 1) / stride) + 1, or ceil with
/// ceil_mode (the last window must start inside the input or its left padding). Throws E-SHAPE naming op if
/// that is below 1, E-ARG for a stride or dilation below 1 or a negative padding.
int64_t window_count(const char* op, int64_t size, int64_t kernel, int64_t stride, int64_t padding,
                     int64_t dilation, bool ceil_mode = false);

}  // namespace ops
}  // namespace gradus
