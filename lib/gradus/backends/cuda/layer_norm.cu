#include <gradus/backends/cuda/rows.cuh>
#include <kernels/layer_norm.cuh>
#include <kernels/layer_norm_block.cuh>

namespace gradus {
namespace cuda {

template <>
struct Launcher<LayerNormKernel> {
  template <class T>
  static void run(const LayerNormArgs& a, const Stream& stream) {
    using C = ComputeType<T>;
    run_rows(kernels::LayerNormForward<T>{a.x.data<T>(), optional<T>(a.weight), optional<T>(a.bias),
                                          a.y.data<T>(), a.mean.data<C>(), a.rstd.data<C>(), a.rows, a.cols,
                                          a.eps, kernels::Teams::for_length(a.cols)},
             a.cols, stream);
  }
};

template <>
struct Launcher<LayerNormBackwardKernel> {
  template <class T>
  static void run(const LayerNormBackwardArgs& a, const Stream& stream) {
    using C = ComputeType<T>;
    if (a.dx.present()) {
      run_rows(kernels::LayerNormBackward<T>{a.x.data<T>(), optional<T>(a.weight), a.dy.data<T>(),
                                             a.mean.data<C>(), a.rstd.data<C>(), a.dx.data<T>(), a.rows,
                                             a.cols, kernels::Teams::for_length(a.cols)},
               a.cols, stream);
    }
    if ((a.d_weight.present() || a.d_bias.present()) && a.cols > 0) columns<T>(a, stream);
  }

 private:
  // Parts enough for a GPU, and few enough to be added up by a thread for each column.
  template <class T>
  static void columns(const LayerNormBackwardArgs& a, const Stream& stream) {
    using C = ComputeType<T>;
    constexpr int64_t kBlocks = 1024, kMostParts = 128, kLeastRows = 64;
    const int64_t tiles = (a.cols + kernels::kWarpSize - 1) / kernels::kWarpSize;
    const int64_t most = std::max<int64_t>(1, std::min(kMostParts, a.rows / kLeastRows));
    const int64_t wanted = std::clamp<int64_t>(kBlocks / tiles, 1, most);
    const int64_t part_rows = std::max<int64_t>(1, (a.rows + wanted - 1) / wanted);
    const int64_t parts = (a.rows + part_rows - 1) / part_rows;
    const Workspace sums(static_cast<size_t>(std::max<int64_t>(1, parts) * 2 * a.cols) * sizeof(C), stream);
    cuda::run(
        kernels::LayerNormWeightBackward<T>{a.x.data<T>(), a.dy.data<T>(), a.mean.data<C>(), a.rstd.data<C>(),
                                            sums.data<C>(), a.rows, a.cols, part_rows},
        stream);
    cuda::run(kernels::LayerNormWeightSum<T>{sums.data<C>(), optional<T>(a.d_weight), optional<T>(a.d_bias),
                                             a.cols, parts},
              stream);
  }
};

}  // namespace cuda

GRADUS_CUDA_KERNEL(LayerNormArgs, kFloatingTypes, LayerNormKernel);
GRADUS_CUDA_KERNEL(LayerNormBackwardArgs, kFloatingTypes, LayerNormBackwardKernel);

}  // namespace gradus
