// Dropout: the host loops of cpu and sim. They drop what the body in dropout_block.cuh drops.
#pragma once
#include <gradus/base/random.h>

#include <cmath>
#include <memory>

#include "kernels/elementwise.cuh"
#include "kernels/indexed.cuh"

namespace gradus {

/// y = x / (1 - p) where the uniform number of the logical element is at least p, else x * 0.
struct DropoutArgs {
  TensorArg x, y;
  PhiloxStream stream;
  double p;
  uint64_t first = 0;  // what the logical elements are counted from; a multiple of 4
  static constexpr auto operands = std::tuple{in(&DropoutArgs::x), out(&DropoutArgs::y)};
};

namespace kernels {
namespace dropout {

// Elements whose 24 bits are at least this are kept: uniform >= p, before the bits are made a float.
inline uint32_t least_kept(double p) {
  return static_cast<uint32_t>(std::ceil(static_cast<double>(static_cast<float>(p)) * 0x1p24));
}
// What they are multiplied by.
template <class C>
C scale_of(double p) {
  return p < 1 ? static_cast<C>(1.0 / (1.0 - p)) : C{0};
}

// keep[i] for the logical elements first + i; n is rounded up to a multiple of 4, as `first` must be one.
inline void draw(const DropoutArgs& args, int64_t first, int64_t n, uint8_t* keep) {
  const uint32_t least = least_kept(args.p);
  for (int64_t i = 0; i < n; i += 4) {
    const PhiloxWords w = args.stream.words((args.first + static_cast<uint64_t>(first + i)) / 4);
    for (int j = 0; j < 4; ++j) keep[i + j] = w.word[j] >> 8 >= least;
  }
}

template <class T>
void apply(double p, int64_t n, T* y, int64_t sy, const T* x, int64_t sx, const uint8_t* keep, int64_t sk) {
  using C = ComputeType<T>;
  const C scales[2] = {C{0}, scale_of<C>(p)};  // no branch to guess wrong
  for (int64_t i = 0; i < n; ++i)
    y[i * sy] = static_cast<T>(static_cast<C>(x[i * sx]) * scales[keep[i * sk]]);
}

}  // namespace dropout

struct DropoutKernel {
  template <class T>
  static void run(const DropoutArgs& args, const Stream&) {
    is_row_major(args.x) && is_row_major(args.y) ? run_row_major<T>(args) : run_strided<T>(args);
  }

 private:
  template <class T>
  static void run_row_major(const DropoutArgs& args) {
    constexpr int64_t kChunk = kIndexedChunk, kGrain = 16;
    const int64_t numel = args.x.numel();
    parallel_for(0, (numel + kChunk - 1) / kChunk, kGrain, [&](int64_t begin, int64_t end) {
      uint8_t keep[kChunk];
      for (int64_t first = begin * kChunk; first < std::min(numel, end * kChunk); first += kChunk) {
        const int64_t n = std::min(kChunk, numel - first);
        dropout::draw(args, first, n, keep);
        dropout::apply(args.p, n, args.y.data<T>() + first, 1, args.x.data<T>() + first, 1, keep, 1);
      }
    });
  }

  // The numbers are drawn in logical order first: one draw gives four neighbours.
  template <class T>
  static void run_strided(const DropoutArgs& args) {
    constexpr int64_t kGrain = 4096;
    const int64_t draws = (args.x.numel() + 3) / 4;
    const std::unique_ptr<uint8_t[]> keep(new uint8_t[static_cast<size_t>(4 * draws)]);
    parallel_for(0, draws, kGrain, [&](int64_t begin, int64_t end) {
      dropout::draw(args, 4 * begin, 4 * (end - begin), keep.get() + 4 * begin);
    });
    TensorArg mask = args.x;
    mask.address = keep.get();
    mask.strides = contiguous_strides(mask.sizes);
    elementwise::for_each_row<2>(
        args.y, {&args.x, &mask}, [&](int64_t n, const int64_t* at, const int64_t* s) {
          dropout::apply(args.p, n, args.y.data<T>() + at[0], s[0], args.x.data<const T>() + at[1], s[1],
                         keep.get() + at[2], s[2]);
        });
  }
};

}  // namespace kernels
}  // namespace gradus
