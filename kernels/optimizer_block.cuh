// The optimizers' steps on many tensors in one launch: blocks are shared out over chunks of the tensors.
#pragma once
#include <kernels/blocks/launch.cuh>
#include <kernels/blocks/pack.cuh>
#include <kernels/blocks/tensor_chunks.cuh>

#include "kernels/optimizer.cuh"

namespace gradus::kernels {

/// What precedes the steps: adds 1 to each tensor's step and makes its update of the numbers that live on the
/// device. A launch of its own, for all blocks of a tensor need the step, so none of them could write it; and
/// the powers of beta, in double, are dear: once a tensor instead of once a block. A thread for each tensor.
template <class C>
struct AdamPrepare {
  static constexpr const char* kName = "fused_adam_prepare";
  float* steps[kMaxTensors];
  int count;
  const double* lr;
  AdamUpdate<C> update;
  AdamUpdate<C>* updates;  // [count]

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int block_size) const { return blocks_for(count, block_size); }
  size_t shared_bytes(int) const { return 0; }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    const int64_t i = element(block);
    if (i >= count) return;
    AdamUpdate<C> now = update.at_step(static_cast<double>(++*steps[i]));
    now.lr = static_cast<C>(*lr);
    updates[i] = now;
  }
};

/// A step of Adam or AdamW.
template <class T>
struct AdamStep {
  static constexpr const char* kName = "fused_adam_";
  using C = ComputeType<T>;
  struct Item {
    T* param;
    const T* grad;
    T* exp_avg;
    T* exp_avg_sq;
    bool packed;  // all addresses are multiples of 16
  };
  Item items[kMaxTensors];
  TensorChunks chunks;
  const AdamUpdate<C>* updates;  // AdamPrepare's

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int) const { return chunks.total(); }
  size_t shared_bytes(int) const { return 0; }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    const TensorChunk chunk = chunks.find(block.group_index());
    const Item& a = items[chunk.tensor];
    const AdamUpdate<C> update = updates[chunk.tensor];
    for_each_pack<kPackSize<T>>(block, chunk.begin, chunk.end, a.packed, [&](auto width, int64_t i) {
      constexpr int W = decltype(width)::value;
      Pack<T, W> param = load_pack<W>(a.param + i), exp_avg = load_pack<W>(a.exp_avg + i),
                 exp_avg_sq = load_pack<W>(a.exp_avg_sq + i);
      const Pack<T, W> grad = load_pack<W>(a.grad + i);
      GRADUS_UNROLL
      for (int j = 0; j < W; ++j) {
        C p = static_cast<C>(param.v[j]), m = static_cast<C>(exp_avg.v[j]),
          v = static_cast<C>(exp_avg_sq.v[j]);
        update(p, static_cast<C>(grad.v[j]), m, v);
        param.v[j] = static_cast<T>(p), exp_avg.v[j] = static_cast<T>(m);
        exp_avg_sq.v[j] = static_cast<T>(v);
      }
      store_pack<W>(a.param + i, param);
      store_pack<W>(a.exp_avg + i, exp_avg);
      store_pack<W>(a.exp_avg_sq + i, exp_avg_sq);
    });
  }
};

/// A step of SGD; the buffers are null where momentum is 0. lr is read from the device, so that a recorded
/// step follows a schedule.
template <class T>
struct SgdStep {
  static constexpr const char* kName = "fused_sgd_";
  using C = ComputeType<T>;
  struct Item {
    T* param;
    const T* grad;
    T* buffer;
    bool packed;
  };
  Item items[kMaxTensors];
  TensorChunks chunks;
  const double* lr;
  SgdUpdate<C> update;

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int) const { return chunks.total(); }
  size_t shared_bytes(int) const { return 0; }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    const TensorChunk chunk = chunks.find(block.group_index());
    const Item& a = items[chunk.tensor];
    SgdUpdate<C> now = update;
    now.lr = static_cast<C>(*lr);
    for_each_pack<kPackSize<T>>(block, chunk.begin, chunk.end, a.packed, [&](auto width, int64_t i) {
      constexpr int W = decltype(width)::value;
      Pack<T, W> param = load_pack<W>(a.param + i), buffer;
      const Pack<T, W> grad = load_pack<W>(a.grad + i);
      if (a.buffer != nullptr) buffer = load_pack<W>(a.buffer + i);
      GRADUS_UNROLL
      for (int j = 0; j < W; ++j) {
        C p = static_cast<C>(param.v[j]), b = a.buffer != nullptr ? static_cast<C>(buffer.v[j]) : C{0};
        now(p, static_cast<C>(grad.v[j]), b);
        param.v[j] = static_cast<T>(p), buffer.v[j] = static_cast<T>(b);
      }
      store_pack<W>(a.param + i, param);
      if (a.buffer != nullptr) store_pack<W>(a.buffer + i, buffer);
    });
  }
};

}  // namespace gradus::kernels
