// The weights and data of the golden models, made from integers alone: see vectors/models.py for the formula.
#pragma once
#include <gradus/tensor/tensor.h>

#include <cstdint>

namespace gradus::golden {

/// The hash of element `i` of array `stream`.
uint32_t hash(uint32_t i, uint32_t stream);

/// float64 values in [-1, 1), exact multiples of 2^-23, times `scale`.
Tensor signed_unit(const Shape& sizes, uint32_t stream, double scale = 1);

/// 1 / sqrt(fan_in), rounded down to a power of two.
double power_of_two_scale(int64_t fan_in);

/// `count` grey images [count, 1, side, side], float32: bytes / 255.
Tensor images(int64_t count, int64_t side);

/// hash % bound as int64.
Tensor hashed_ints(const Shape& sizes, uint32_t stream, int64_t bound);

}  // namespace gradus::golden
