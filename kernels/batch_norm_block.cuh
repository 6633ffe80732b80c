// Batch norm. A channel's sums are made in parts, each by a block or by the lanes of one that have
// neighbouring channels, and added up in order by a thread for each channel.
#pragma once
#include <kernels/blocks/launch.cuh>
#include <kernels/blocks/reduce.cuh>

#include "kernels/batch_norm.cuh"

namespace gradus::kernels {

/// How blocks share out the rows of channels: a block has part_rows rows of one channel, or, where channels
/// are neighbours in memory, of as many as a warp has lanes.
struct ChannelTiles {
  ChannelLayout layout;
  int64_t part_rows;

  GRADUS_HD int width(int block_size) const {
    if (!layout.last) return 1;
    return block_size < kWarpSize ? block_size : kWarpSize;
  }
  GRADUS_HD int64_t tiles(int block_size) const {
    return (layout.channels + width(block_size) - 1) / width(block_size);
  }
  GRADUS_HD int64_t parts() const { return (layout.rows + part_rows - 1) / part_rows; }
  int64_t groups(int block_size) const { return tiles(block_size) * parts(); }
};

/// The calling thread's share of a tile.
struct ChannelShare {
  int64_t part, channel, first, end, count;  // rows first, first + step, … before end; count: of the part
  int width, step;
  bool live;

  template <Block B>
  GRADUS_HD static ChannelShare of(const ChannelTiles& tiles, const B& block) {
    const int width = tiles.width(block.size()), rank = block.thread_rank();
    const int64_t n = tiles.tiles(block.size()), part = block.group_index() / n,
                  channel = block.group_index() % n * width + rank % width, start = part * tiles.part_rows,
                  rest = tiles.layout.rows - start, count = rest < tiles.part_rows ? rest : tiles.part_rows;
    const bool live = channel < tiles.layout.channels;
    return {part,  channel, start + rank / width, live ? start + count : 0,
            count, width,   block.size() / width, live};
  }

  /// The sum over the part of each thread's values, channel by channel. `scratch`: an element a thread.
  template <Block B, class C>
  GRADUS_HD C total(B& block, C value, C* scratch) const {
    if (width == 1) return block_reduce(block, value, Sum{}, scratch);
    scratch[block.thread_rank()] = value;
    block.sync();
    C sum = 0;
    for (int h = 0; h < step; ++h) sum += scratch[h * width + block.thread_rank() % width];
    block.sync();
    return sum;
  }
  /// Whether this thread writes its channel's result.
  template <Block B>
  GRADUS_HD bool writes(const B& block) const {
    return live && block.thread_rank() < width;
  }
};

/// The moments of the parts, [parts, channels].
template <class T>
struct ChannelMoments {
  static constexpr const char* kName = "batch_norm_statistics";
  using C = ComputeType<T>;
  const T* x;
  Moments* moments;
  ChannelTiles tiles;

  static constexpr bool supports(int block_size) { return whole_warps(block_size); }
  int64_t groups(int block_size) const { return tiles.groups(block_size); }
  size_t shared_bytes(int block_size) const { return shared_size<C>(block_size); }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    C* scratch = block.template shared<C>(block.size());
    const ChannelShare share = ChannelShare::of(tiles, block);
    const auto at = [&](int64_t row) { return static_cast<C>(x[tiles.layout.at(row, share.channel)]); };
    C sum = 0, squares = 0;
    for (int64_t row = share.first; row < share.end; row += share.step) sum += at(row);
    sum = share.total(block, sum, scratch);
    const C mean = sum / static_cast<C>(share.count);
    for (int64_t row = share.first; row < share.end; row += share.step)
      squares += (at(row) - mean) * (at(row) - mean);
    squares = share.total(block, squares, scratch);
    if (share.writes(block))
      moments[share.part * tiles.layout.channels + share.channel] = {
          static_cast<double>(share.count), static_cast<double>(sum), static_cast<double>(squares)};
  }
};

/// Adds the parts' moments up. A thread for each channel.
template <class C>
struct ChannelMomentsSum {
  static constexpr const char* kName = "batch_norm_statistics_sum";
  const Moments* moments;
  BatchNormFinish<C> finish;
  int64_t channels, parts;

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int block_size) const { return blocks_for(channels, block_size); }
  size_t shared_bytes(int) const { return 0; }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    const int64_t c = element(block);
    if (c >= channels) return;
    Moments total = moments[c];
    for (int64_t p = 1; p < parts; ++p) total.add(moments[p * channels + c]);
    finish(c, total);
  }
};

/// y = (x - mean) * rstd * weight + bias. A thread for each element.
template <class T>
struct ChannelNormalise {
  static constexpr const char* kName = "batch_norm";
  using C = ComputeType<T>;
  const T* x;
  const C *mean, *rstd, *weight, *bias;  // the last two may be null
  T* y;
  ChannelLayout layout;

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int block_size) const { return blocks_for(layout.rows * layout.channels, block_size); }
  size_t shared_bytes(int) const { return 0; }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    const int64_t i = element(block);
    if (i >= layout.rows * layout.channels) return;
    const int64_t c = layout.channel_of(i);
    const C scale = weight != nullptr ? rstd[c] * weight[c] : rstd[c];
    y[i] = static_cast<T>((static_cast<C>(x[i]) - mean[c]) * scale + (bias != nullptr ? bias[c] : C{0}));
  }
};

/// The parts' sums of dy and of dy n, [parts, 2, channels].
template <class T>
struct ChannelGradientSums {
  static constexpr const char* kName = "batch_norm_sums";
  using C = ComputeType<T>;
  const T *x, *dy;
  const C *mean, *rstd;
  double* sums;
  ChannelTiles tiles;

  static constexpr bool supports(int block_size) { return whole_warps(block_size); }
  int64_t groups(int block_size) const { return tiles.groups(block_size); }
  size_t shared_bytes(int block_size) const { return shared_size<C>(block_size); }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    C* scratch = block.template shared<C>(block.size());
    const ChannelShare share = ChannelShare::of(tiles, block);
    const C m = share.live ? mean[share.channel] : C{0};
    C sum = 0, dot = 0;
    for (int64_t row = share.first; row < share.end; row += share.step) {
      const int64_t at = tiles.layout.at(row, share.channel);
      sum += static_cast<C>(dy[at]);
      dot += static_cast<C>(dy[at]) * (static_cast<C>(x[at]) - m);
    }
    sum = share.total(block, sum, scratch);
    dot = share.total(block, dot, scratch);
    if (!share.writes(block)) return;
    const int64_t channels = tiles.layout.channels;
    sums[share.part * 2 * channels + share.channel] = static_cast<double>(sum);
    sums[(share.part * 2 + 1) * channels + share.channel] = static_cast<double>(dot * rstd[share.channel]);
  }
};

/// Adds the parts up. A thread for each channel.
template <class C>
struct ChannelGradientTotals {
  static constexpr const char* kName = "batch_norm_sums_sum";
  const double* sums;
  C *sum, *dot;
  int64_t channels, parts;

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int block_size) const { return blocks_for(channels, block_size); }
  size_t shared_bytes(int) const { return 0; }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    const int64_t c = element(block);
    if (c >= channels) return;
    double s = 0, d = 0;
    for (int64_t p = 0; p < parts; ++p)
      s += sums[p * 2 * channels + c], d += sums[(p * 2 + 1) * channels + c];
    sum[c] = static_cast<C>(s);
    dot[c] = static_cast<C>(d);
  }
};

/// dx = rstd * weight * (dy - sum / rows - n dot / rows). A thread for each element.
template <class T>
struct ChannelGradient {
  static constexpr const char* kName = "batch_norm_backward";
  using C = ComputeType<T>;
  const T *x, *dy;
  const C *mean, *rstd, *weight, *sum, *dot;  // weight may be null
  T* dx;
  ChannelLayout layout;

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int block_size) const { return blocks_for(layout.rows * layout.channels, block_size); }
  size_t shared_bytes(int) const { return 0; }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    const int64_t i = element(block);
    if (i >= layout.rows * layout.channels) return;
    const int64_t c = layout.channel_of(i);
    const C scale = weight != nullptr ? rstd[c] * weight[c] : rstd[c],
            share = C{1} / static_cast<C>(layout.rows);
    const C normal = (static_cast<C>(x[i]) - mean[c]) * rstd[c];
    dx[i] = static_cast<T>((static_cast<C>(dy[i]) - sum[c] * share - normal * (dot[c] * share)) * scale);
  }
};

}  // namespace gradus::kernels
