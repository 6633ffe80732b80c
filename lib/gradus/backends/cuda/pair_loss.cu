#include <gradus/backends/cuda/reduce.cuh>
#include <kernels/pair_loss_block.cuh>

namespace gradus {
namespace cuda {
namespace {

// Elements of a block that writes them all: some packs for each thread.
template <class T>
constexpr int64_t kChunk = 4 * kBlockSize* kernels::kPackSize<T>;

}  // namespace

template <class F>
struct Launcher<PairLossKernel<F>> {
  template <class T>
  static void run(const PairLossArgs& a, const Stream& stream) {
    using C = ComputeType<T>;
    const int64_t n = a.x.numel();
    kernels::PairLossForward<F, T> body{a.x.data<T>(),
                                        a.t.data<T>(),
                                        nullptr,
                                        nullptr,
                                        n,
                                        kChunk<T>,
                                        static_cast<C>(a.p),
                                        kernels::all_aligned({a.x.address, a.t.address, a.y.address})};
    if (a.each) {
      body.each = a.y.data<T>();
      return cuda::run(body, stream);
    }
    body.packed = kernels::all_aligned({a.x.address, a.t.address});
    const int64_t chunks = (n + kChunk<T> - 1) / kChunk<T>;
    body.chunk *= (chunks + kernels::reduce_plan::kBlocks - 1) / kernels::reduce_plan::kBlocks;
    if (n == 0) body.chunk = kChunk<T>;
    const int64_t parts = body.groups(kBlockSize);
    const Workspace sums(static_cast<size_t>(std::max<int64_t>(1, parts)) * sizeof(C), stream);
    body.sums = sums.data<C>();
    cuda::run(body, stream);
    kernels::LoopDims one;
    one.push_back(1, 0, 0);
    using Total = kernels::FoldInto<reduction::Mean, T, T>;
    reduce_parts(Total{a.y.data<T>(), a.divisor}, body.sums, one, parts, stream);
  }
};

template <class F>
struct Launcher<PairLossBackwardKernel<F>> {
  template <class T>
  static void run(const PairLossBackwardArgs& a, const Stream& stream) {
    using C = ComputeType<T>;
    const bool packed = kernels::all_aligned({a.x.address, a.t.address, a.dx.address}) &&
                        (!a.each || kernels::all_aligned({a.dy.address}));
    cuda::run(kernels::PairLossBackward<F, T>{a.x.data<T>(), a.t.data<T>(), a.dy.data<T>(), a.dx.data<T>(),
                                              a.x.numel(), kChunk<T>, static_cast<C>(a.p),
                                              static_cast<C>(a.divisor), a.each, packed},
              stream);
  }
};

}  // namespace cuda

#define GRADUS_CUDA_PAIR_LOSS(F)                                               \
  GRADUS_CUDA_KERNEL(PairLossArgs, kFloatingTypes, PairLossKernel<losses::F>); \
  GRADUS_CUDA_KERNEL(PairLossBackwardArgs, kFloatingTypes, PairLossBackwardKernel<losses::F>)

GRADUS_CUDA_PAIR_LOSS(Squared);
GRADUS_CUDA_PAIR_LOSS(Absolute);
GRADUS_CUDA_PAIR_LOSS(Huber);
GRADUS_CUDA_PAIR_LOSS(SmoothL1);
GRADUS_CUDA_PAIR_LOSS(BinaryLogits);
GRADUS_CUDA_PAIR_LOSS(Binary);

}  // namespace gradus
