// Dropout by Philox; a thread for each element. There is no mask to keep: the gradient is the same kernel on
// dy, which draws the same numbers again.
#pragma once
#include <gradus/base/random.h>

#include <kernels/blocks/launch.cuh>

namespace gradus::kernels {

/// y = x / (1 - p) where the element's uniform number is at least p, else x * 0 (so NaN stays NaN, as in
/// PyTorch). Numbers are drawn for the logical index, so a channels-last tensor drops what the same tensor in
/// NCHW order drops.
template <class T>
struct Dropout {
  static constexpr const char* kName = "dropout";
  const T* x;
  T* y;
  int64_t n;
  double p;
  PhiloxStream random;
  const int64_t*
      extra_offset;  // null, or added to random.offset: lives on the device, so that a replay draws anew
  int64_t channels, plane;  // of a channels-last tensor; 0, 0: memory order is logical order

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int block_size) const { return blocks_for(n, block_size); }
  size_t shared_bytes(int) const { return 0; }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    using C = ComputeType<T>;
    const int64_t i = element(block);
    if (i >= n) return;
    PhiloxStream stream = random;
    if (extra_offset != nullptr) stream.offset += static_cast<uint64_t>(*extra_offset);
    const bool keep = stream.template uniform<float>(logical(i)) >= static_cast<float>(p);
    const C scale = keep ? static_cast<C>(1.0 / (1.0 - p)) : C{0};
    y[i] = static_cast<T>(static_cast<C>(x[i]) * scale);
  }

 private:
  GRADUS_HD uint64_t logical(int64_t i) const {
    if (channels == 0) return static_cast<uint64_t>(i);
    const int64_t c = i % channels, at = i / channels % plane, image = i / (channels * plane);
    return static_cast<uint64_t>((image * channels + c) * plane + at);
  }
};

}  // namespace gradus::kernels

GRADUS_KERNEL_FLOATING(gradus::kernels::Dropout);
