// Tensors (N, C, ...) as kernels of channels see them.
#pragma once
#include <gradus/base/macros.h>

#include <cstdint>

namespace gradus {

/// Where the elements of a channel lie: in planes of `inner` neighbours, one an image, or, if `last`, in rows
/// of all channels. A channel has `rows` elements.
struct ChannelLayout {
  int64_t rows, channels, inner;
  bool last;

  /// The place of a channel's row-th element.
  GRADUS_HD int64_t at(int64_t row, int64_t channel) const {
    return last ? row * channels + channel : (row / inner * channels + channel) * inner + row % inner;
  }
  GRADUS_HD int64_t channel_of(int64_t place) const {
    return last ? place % channels : place / inner % channels;
  }
};

/// Count, sum and sum of squares around the mean of some numbers. In double, for a channel has millions.
struct Moments {
  double count = 0, sum = 0, squares = 0;

  /// Takes other numbers in. T. Chan, G. Golub, R. LeVeque: Updating Formulae and a Pairwise Algorithm for
  /// Computing Sample Variances (1979).
  GRADUS_HD void add(const Moments& other) {
    if (count > 0 && other.count > 0) {
      const double apart = other.sum / other.count - sum / count;
      squares += apart * apart * (count * other.count / (count + other.count));
    }
    count += other.count;
    sum += other.sum;
    squares += other.squares;
  }
};

}  // namespace gradus
