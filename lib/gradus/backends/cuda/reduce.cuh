// Launching a reduction: which layout, and one launch or two.
#pragma once
#include <gradus/backends/cuda/kernel.cuh>
#include <kernels/reduce_block.cuh>

namespace gradus::cuda {

/// Combines each output's `parts` totals, [outputs, parts], into y. `kept`: the outputs' dimensions.
template <class Op>
void reduce_parts(const Op& op, const typename Op::Total* totals, const kernels::LoopDims& kept,
                  int64_t parts, const Stream& stream) {
  const int64_t outputs = kept.numel();
  const kernels::Teams teams{outputs < 64 ? 0 : kernels::kWarpSize};
  run(kernels::ReduceParts<Op>{totals, op, kept, outputs, parts, teams}, stream);
}

template <int V, class T, class Op>
void reduce_packs(const reduction::Nest& nest, const T* x, const Op& op, const Stream& stream) {
  const kernels::ReduceShape shape = kernels::reduce_plan::shape_of(nest, V, kBlockSize);
  if (shape.parts == 1) return run(kernels::ReduceElements<Op, T, V>{x, op, nullptr, shape}, stream);
  const kernels::LoopDims kept = kernels::reduce_plan::dims_of(nest.kept, nest.kept_count, 1);
  const Workspace totals(static_cast<size_t>(kept.numel() * shape.parts) * sizeof(typename Op::Total),
                         stream);
  run(kernels::ReduceElements<Op, T, V>{x, op, totals.data<typename Op::Total>(), shape}, stream);
  reduce_parts(op, totals.data<typename Op::Total>(), kept, shape.parts, stream);
}

/// Op over x, of elements T, into a tensor that lies as `y` does. kPacks: also as packs of 16 bytes.
template <class T, bool kPacks, class Op>
void reduce(const TensorArg& x, const TensorArg& y, const Op& op, const Stream& stream) {
  if (y.numel() == 0) return;
  const reduction::Nest nest = reduction::make_nest(x, y);
  if constexpr (kPacks) {
    constexpr int kPack = kernels::kPackSize<T>;
    if (kernels::reduce_plan::packs(nest, x.address, kPack))
      return reduce_packs<kPack>(nest, x.data<const T>(), op, stream);
  }
  reduce_packs<1>(nest, x.data<const T>(), op, stream);
}

/// Reduction F of elements T into elements Y.
template <class F, class T, class Y>
void fold(const ReduceArgs& a, const Stream& stream) {
  // Each kernel costs seconds of nvcc: packs for the dtypes and reductions that have to be fast.
  constexpr bool kFast = std::is_same_v<ComputeType<T>, float> && !std::is_same_v<F, reduction::Multiply>;
  reduce<T, kFast>(a.x, a.y, kernels::FoldInto<F, T, Y>{a.y.data<Y>(), a.count}, stream);
}

template <class F>
struct Launcher<ReduceKernel<F>> {
  template <class T>
  static void run(const ReduceArgs& a, const Stream& stream) {
    fold<F, T, T>(a, stream);
  }
};

}  // namespace gradus::cuda
