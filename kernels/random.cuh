// Random numbers by logical element: what PhiloxStream gives for index i, four at a time.
#pragma once
#include <gradus/base/dtype.h>
#include <gradus/base/random.h>
#include <gradus/runtime/stream.h>

#include <tuple>

#include "kernels/indexed.cuh"

namespace gradus {

/// y[i] = a + (b - a) * uniform(i), or a + b * normal(i)
struct RandomArgs {
  TensorArg y;
  PhiloxStream stream;
  double a, b;
  static constexpr auto operands = std::tuple{out(&RandomArgs::y)};
};

/// y[i] = low + below(i, range)
struct RandomIntArgs {
  TensorArg y;
  PhiloxStream stream;
  int64_t low;
  uint64_t range;
  static constexpr auto operands = std::tuple{out(&RandomIntArgs::y)};
};

namespace kernels {
namespace random {

// The elements first … of the stream that one evaluation of Philox gives: uniform numbers in [0, 1).
GRADUS_HD inline void uniform_block(const PhiloxStream& stream, int64_t first, float* out) {
  const PhiloxWords w = stream.words(static_cast<uint64_t>(first) / 4);
  for (int j = 0; j < 4; ++j) out[j] = uniform_from_bits(w.word[j]);
}
GRADUS_HD inline void uniform_block(const PhiloxStream& stream, int64_t first, double* out) {
  const PhiloxWords w = stream.words(static_cast<uint64_t>(first) / 2);
  for (int j = 0; j < 2; ++j) out[j] = uniform_from_bits(uint64_t{w.word[2 * j + 1]} << 32 | w.word[2 * j]);
}
template <class C>
inline constexpr int64_t kBlock = std::is_same_v<C, float> ? 4 : 2;

// Two uniform numbers made two normal ones, as PhiloxStream::normal() has them.
template <class C>
GRADUS_HD void make_normal(C& u, C& v) {
  constexpr C two_pi = static_cast<C>(6.283185307179586476925);
  constexpr C step = std::is_same_v<C, float> ? static_cast<C>(0x1p-24) : static_cast<C>(0x1p-53);
  const C radius = math::sqrt(C{-2} * math::log(u + step)), angle = two_pi * v;
  u = radius * math::cos(angle);
  v = radius * math::sin(angle);
}

// n values, rounded up to whole blocks: the buffer has room for that.
template <class C>
void uniforms(const PhiloxStream& stream, int64_t first, int64_t n, C* out) {
  for (int64_t i = 0; i < n; i += kBlock<C>) uniform_block(stream, first + i, out + i);
}

// Pairs are taken apart first: the long loop then runs along contiguous memory, and so on vectors.
template <class C>
void normals(const PhiloxStream& stream, int64_t first, int64_t n, C* out) {
  C u[kIndexedChunk / 2], v[kIndexedChunk / 2];
  const int64_t pairs = (n + 1) / 2;
  uniforms(stream, first, n, out);
  for (int64_t k = 0; k < pairs; ++k) u[k] = out[2 * k], v[k] = out[2 * k + 1];
#pragma omp simd
  for (int64_t k = 0; k < pairs; ++k) make_normal(u[k], v[k]);
  for (int64_t k = 0; k < pairs; ++k) out[2 * k] = u[k], out[2 * k + 1] = v[k];
}

// A uniform number cut to the digits that T has, or rounding would give 1.
template <class T, class C>
GRADUS_HD C cut(C u) {
  constexpr C digits = std::is_same_v<T, Half> ? C{2048} : std::is_same_v<T, BFloat16> ? C{256} : C{1};
  return digits == C{1} ? u : static_cast<C>(static_cast<int>(u * digits)) / digits;
}

}  // namespace random

struct UniformKernel {
  template <class T>
  static void run(const RandomArgs& args, const Stream&) {
    using C = ComputeType<T>;
    const C low = static_cast<C>(args.a), range = static_cast<C>(args.b - args.a);
    fill_by_index<T, C>(args.y, [&](int64_t first, int64_t n, C* out) {
      random::uniforms(args.stream, first, n, out);
      for (int64_t i = 0; i < n; ++i) out[i] = low + range * random::cut<T>(out[i]);
    });
  }
};

struct NormalKernel {
  template <class T>
  static void run(const RandomArgs& args, const Stream&) {
    using C = ComputeType<T>;
    const C mean = static_cast<C>(args.a), deviation = static_cast<C>(args.b);
    fill_by_index<T, C>(args.y, [&](int64_t first, int64_t n, C* out) {
      random::normals(args.stream, first, n, out);
      for (int64_t i = 0; i < n; ++i) out[i] = mean + deviation * out[i];
    });
  }
};

struct RandomIntKernel {
  template <class T>
  static void run(const RandomIntArgs& args, const Stream&) {
    fill_by_index<T, int64_t>(args.y, [&](int64_t first, int64_t n, int64_t* out) {
      for (int64_t i = 0; i < n; ++i)
        out[i] =
            args.low + static_cast<int64_t>(args.stream.below(static_cast<uint64_t>(first + i), args.range));
    });
  }
};

}  // namespace kernels
}  // namespace gradus
