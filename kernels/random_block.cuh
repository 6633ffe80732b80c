// The functors of random numbers and sequences for indexed_block.cuh; to the bit what random.cuh and
// sequence.cuh make on the host.
#pragma once
#include <kernels/indexed_block.cuh>

#include "kernels/random.cuh"

namespace gradus::kernels {

namespace random {

template <class C>
GRADUS_HD void four_uniforms(const PhiloxStream& stream, uint64_t first, C (&v)[4]) {
  GRADUS_UNROLL
  for (int j = 0; j < 4; j += static_cast<int>(kBlock<C>))
    uniform_block(stream, static_cast<int64_t>(first) + j, v + j);
}

}  // namespace random

template <class T>
struct UniformNumbers {
  static constexpr const char* kName = "uniform";
  static constexpr bool kReads = false;
  using Value = ComputeType<T>;
  PhiloxStream stream;
  Value low, range;

  GRADUS_HD void operator()(uint64_t first, Value (&v)[4]) const {
    random::four_uniforms(stream, first, v);
    GRADUS_UNROLL
    for (Value& u : v) u = low + range * random::cut<T>(u);
  }
};

template <class T>
struct NormalNumbers {
  static constexpr const char* kName = "normal";
  static constexpr bool kReads = false;
  using Value = ComputeType<T>;
  PhiloxStream stream;
  Value mean, deviation;

  GRADUS_HD void operator()(uint64_t first, Value (&v)[4]) const {
    random::four_uniforms(stream, first, v);
    random::make_normal(v[0], v[1]);
    random::make_normal(v[2], v[3]);
    GRADUS_UNROLL
    for (Value& u : v) u = mean + deviation * u;
  }
};

struct RandomInts {
  static constexpr const char* kName = "randint";
  static constexpr bool kReads = false;
  using Value = int64_t;
  PhiloxStream stream;
  int64_t low;
  uint64_t range;

  GRADUS_HD void operator()(uint64_t first, Value (&v)[4]) const {
    GRADUS_UNROLL
    for (uint64_t j = 0; j < 4; ++j) v[j] = low + static_cast<int64_t>(stream.below(first + j, range));
  }
};

}  // namespace gradus::kernels
