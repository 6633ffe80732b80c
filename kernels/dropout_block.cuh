// Dropout by Philox, for indexed_block.cuh. There is no mask to keep: the gradient is the same kernel on dy,
// which draws the same numbers again.
#pragma once
#include <kernels/indexed_block.cuh>

#include "kernels/dropout.cuh"

namespace gradus::kernels {

/// x / (1 - p) where the element's uniform number is at least p, else x * 0 (so NaN stays NaN, as in
/// PyTorch).
template <class T>
struct Drop {
  static constexpr const char* kName = "dropout";
  static constexpr bool kReads = true;
  using Value = ComputeType<T>;
  PhiloxStream stream;
  uint64_t start;
  uint32_t least;
  Value scale;

  explicit Drop(const DropoutArgs& args)
      : stream(args.stream),
        start(args.first),
        least(dropout::least_kept(args.p)),
        scale(dropout::scale_of<Value>(args.p)) {}
  GRADUS_HD void operator()(uint64_t first, Value (&v)[4]) const {
    const PhiloxWords w = stream.words((start + first) / 4);
    GRADUS_UNROLL
    for (int j = 0; j < 4; ++j) v[j] *= w.word[j] >> 8 >= least ? scale : Value{0};
  }
};

}  // namespace gradus::kernels
