// Tensors of random numbers. Element i of the result, counted in row-major order, depends on the generator's
// seed, on how many calls have drawn from it, and on i: not on device, memory order or threads. Each call
// takes one stream from the generator (base/random.h).
#pragma once
#include <gradus/base/random.h>
#include <gradus/tensor/views.h>

namespace gradus {

/// Uniform in [0, 1); floating dtypes only (else E-NOT-IMPLEMENTED), as for all functions but the integer
/// ones.
Tensor rand(const Shape& sizes, const TensorOptions& options = {},
            Generator& generator = default_generator());
/// Normal with mean 0 and variance 1.
Tensor randn(const Shape& sizes, const TensorOptions& options = {},
             Generator& generator = default_generator());
inline Tensor rand(const Shape& sizes, DType dtype, Device device = {}) {
  return rand(sizes, {.dtype = dtype, .device = device});
}
inline Tensor randn(const Shape& sizes, DType dtype, Device device = {}) {
  return randn(sizes, {.dtype = dtype, .device = device});
}
/// With the sizes, dtype, device and memory order of `like`.
Tensor rand_like(const Tensor& like, Generator& generator = default_generator());
Tensor randn_like(const Tensor& like, Generator& generator = default_generator());

/// Whole numbers in [low, high), int64 unless `options` has a dtype. Throws E-ARG unless low < high, and for
/// numbers that the dtype does not hold.
Tensor randint(int64_t low, int64_t high, const Shape& sizes, const TensorOptions& options = {},
               Generator& generator = default_generator());
inline Tensor randint(int64_t high, const Shape& sizes, const TensorOptions& options = {}) {
  return randint(0, high, sizes, options);
}
/// 0 … n-1 in random order, int64 unless `options` has a dtype. Throws E-ARG where that cannot count to n-1.
Tensor randperm(int64_t n, const TensorOptions& options = {}, Generator& generator = default_generator());
/// 1 with probability p[i], else 0, in p's dtype and shape.
Tensor bernoulli(const Tensor& p, Generator& generator = default_generator());

/// Fills x, of any strides, and returns it. In-place rules apply: initialise parameters under NoGradGuard.
Tensor uniform_(Tensor x, double from = 0, double to = 1, Generator& generator = default_generator());
Tensor normal_(Tensor x, double mean = 0, double std = 1, Generator& generator = default_generator());

}  // namespace gradus
