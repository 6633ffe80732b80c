// What a train step of the lessons' models (lessons/common/models.h) works on and how much it computes.
#pragma once
#include <gradus/ops/ops.h>

namespace work {

// Floating-point operations of a train step and a sample: two a weight and place forward, twice as many
// backward, less the gradient of the input.
inline constexpr double kSmallNetFlops = 3 * 2.0 * (16 * 32 + 32) - 2.0 * 16 * 32;
inline constexpr double kSimpleNetForwardFlops = 2.0 * (784 * 256 + 256 * 128 + 128 * 10);
inline constexpr double kSimpleNetFlops = 3 * kSimpleNetForwardFlops - 2.0 * 784 * 256;
inline constexpr double kCnnFirstFlops = 2.0 * 28 * 28 * 32 * 9;  // of the first convolution, forward
inline constexpr double kCnnFlops =
    3 * (kCnnFirstFlops + 2.0 * 14 * 14 * 64 * 9 * 32 + 2.0 * (64 * 7 * 7 * 256 + 256 * 10)) - kCnnFirstFlops;

/// 0, 1, … classes - 1, 0, 1, …
inline gradus::Tensor labels(int64_t n, int64_t classes = 10) {
  return gradus::arange(n) - gradus::floor_divide(gradus::arange(n), classes) * classes;
}

}  // namespace work
