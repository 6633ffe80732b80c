// The functor of sequences for indexed_block.cuh.
#pragma once
#include <kernels/indexed_block.cuh>

#include "kernels/sequence.cuh"

namespace gradus::kernels {

/// Numbers: ArangeNumbers or LinspaceNumbers.
template <class C, class Numbers>
struct Sequence {
  static constexpr const char* kName = "sequence";
  static constexpr bool kReads = false;
  using Value = C;
  Numbers numbers;

  GRADUS_HD void operator()(uint64_t first, C (&v)[4]) const {
    GRADUS_UNROLL
    for (int j = 0; j < 4; ++j) v[j] = numbers.at(static_cast<int64_t>(first) + j);
  }
};

}  // namespace gradus::kernels
