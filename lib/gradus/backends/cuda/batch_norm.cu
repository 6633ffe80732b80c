#include <gradus/backends/cuda/rows.cuh>
#include <kernels/batch_norm.cuh>
#include <kernels/batch_norm_block.cuh>

namespace gradus {
namespace cuda {
namespace {

// Parts enough for a GPU, and few enough to be added up by a thread for each channel.
kernels::ChannelTiles tiles_of(const ChannelLayout& layout) {
  constexpr int64_t kBlocks = 1024, kMostParts = 128, kLeastRows = 512;
  const int64_t width = layout.last ? kernels::kWarpSize : 1, tiles = (layout.channels + width - 1) / width;
  const int64_t most = std::clamp<int64_t>(layout.rows / kLeastRows, 1, kMostParts);
  const int64_t parts = std::clamp<int64_t>(kBlocks / std::max<int64_t>(tiles, 1), 1, most);
  return {layout, std::max<int64_t>(1, (layout.rows + parts - 1) / parts)};
}

}  // namespace

template <>
struct Launcher<BatchNormStatisticsKernel> {
  template <class T>
  static void run(const BatchNormStatisticsArgs& a, const Stream& stream) {
    using C = ComputeType<T>;
    const kernels::ChannelTiles tiles = tiles_of(a.layout);
    const int64_t parts = tiles.parts(), channels = a.layout.channels;
    const Workspace moments(static_cast<size_t>(parts * channels) * sizeof(Moments), stream);
    cuda::run(kernels::ChannelMoments<T>{a.x.data<T>(), moments.data<Moments>(), tiles}, stream);
    cuda::run(kernels::ChannelMomentsSum<C>{moments.data<Moments>(),
                                            {optional<C>(a.running_mean), optional<C>(a.running_var),
                                             a.mean.data<C>(), a.rstd.data<C>(), a.momentum, a.eps},
                                            channels,
                                            parts},
              stream);
  }
};

template <>
struct Launcher<BatchNormKernel> {
  template <class T>
  static void run(const BatchNormArgs& a, const Stream& stream) {
    using C = ComputeType<T>;
    cuda::run(
        kernels::ChannelNormalise<T>{a.x.data<T>(), a.mean.data<C>(), a.rstd.data<C>(), optional<C>(a.weight),
                                     optional<C>(a.bias), a.y.data<T>(), a.layout},
        stream);
  }
};

template <>
struct Launcher<BatchNormSumsKernel> {
  template <class T>
  static void run(const BatchNormSumsArgs& a, const Stream& stream) {
    using C = ComputeType<T>;
    const kernels::ChannelTiles tiles = tiles_of(a.layout);
    const int64_t parts = tiles.parts(), channels = a.layout.channels;
    const Workspace sums(static_cast<size_t>(std::max<int64_t>(1, parts * 2 * channels)) * sizeof(double),
                         stream);
    cuda::run(kernels::ChannelGradientSums<T>{a.x.data<T>(), a.dy.data<T>(), a.mean.data<C>(),
                                              a.rstd.data<C>(), sums.data<double>(), tiles},
              stream);
    cuda::run(kernels::ChannelGradientTotals<C>{sums.data<double>(), a.sum.data<C>(), a.dot.data<C>(),
                                                channels, parts},
              stream);
  }
};

template <>
struct Launcher<BatchNormBackwardKernel> {
  template <class T>
  static void run(const BatchNormBackwardArgs& a, const Stream& stream) {
    using C = ComputeType<T>;
    cuda::run(kernels::ChannelGradient<T>{a.x.data<T>(), a.dy.data<T>(), a.mean.data<C>(), a.rstd.data<C>(),
                                          optional<C>(a.weight), a.sum.data<C>(), a.dot.data<C>(),
                                          a.dx.data<T>(), a.layout},
              stream);
  }
};

}  // namespace cuda

GRADUS_CUDA_KERNEL(BatchNormStatisticsArgs, kFloatingTypes, BatchNormStatisticsKernel);
GRADUS_CUDA_KERNEL(BatchNormArgs, kFloatingTypes, BatchNormKernel);
GRADUS_CUDA_KERNEL(BatchNormSumsArgs, kFloatingTypes, BatchNormSumsKernel);
GRADUS_CUDA_KERNEL(BatchNormBackwardArgs, kFloatingTypes, BatchNormBackwardKernel);

}  // namespace gradus
