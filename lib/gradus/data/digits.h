// Handwritten-looking digits drawn by code, for machines without the real data.
#pragma once
#include <gradus/data/image_data.h>

namespace gradus {

/// `count` images of 28 x 28 pixels of the digits 0 to 9: strokes that are shifted, turned, sheared, scaled,
/// thicker or thinner, and noisy. Image i depends on (seed, i) only, to the bit on every machine.
ImageSet make_digits(int64_t count, uint64_t seed = 0);

/// A training and a test set of such digits, without common images.
ImageData make_digit_data(int64_t train = 10000, int64_t test = 2000, uint64_t seed = 0);

}  // namespace gradus
