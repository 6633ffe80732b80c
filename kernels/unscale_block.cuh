// Scaling many gradients back in one launch, with a check for infinities.
#pragma once
#include <kernels/blocks/launch.cuh>
#include <kernels/blocks/pack.cuh>
#include <kernels/blocks/reduce.cuh>
#include <kernels/blocks/tensor_chunks.cuh>

#include "kernels/unscale.cuh"

namespace gradus::kernels {

/// Each block that finds an infinity or NaN writes the same 1.
template <class T>
struct Unscale {
  static constexpr const char* kName = "unscale_";
  using C = ComputeType<T>;
  struct Item {
    T* grad;
    bool packed;  // the address is a multiple of 16
  };
  Item items[kMaxTensors];
  TensorChunks chunks;
  const float* inv_scale;
  float* found_inf;

  static constexpr bool supports(int block_size) { return whole_warps(block_size); }
  int64_t groups(int) const { return chunks.total(); }
  size_t shared_bytes(int block_size) const { return shared_size<int>(reduce_slots(block_size)); }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    const TensorChunk chunk = chunks.find(block.group_index());
    T* grad = items[chunk.tensor].grad;
    const C scale = static_cast<C>(*inv_scale);
    int infinite = 0;
    for_each_pack<kPackSize<T>>(block, chunk.begin, chunk.end, items[chunk.tensor].packed,
                                [&](auto width, int64_t i) {
                                  constexpr int W = decltype(width)::value;
                                  Pack<T, W> g = load_pack<W>(grad + i);
                                  GRADUS_UNROLL
                                  for (int j = 0; j < W; ++j) {
                                    const C v = static_cast<C>(g.v[j]);
                                    infinite += !is_finite(v);
                                    g.v[j] = static_cast<T>(v * scale);
                                  }
                                  store_pack<W>(grad + i, g);
                                });
    infinite = block_reduce(block, infinite, Sum{}, block.template shared<int>(reduce_slots(block.size())));
    if (infinite > 0 && block.thread_rank() == 0) *found_inf = 1;
  }
};

}  // namespace gradus::kernels
