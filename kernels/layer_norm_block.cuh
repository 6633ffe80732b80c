// Layer norm over the last dimension. Rows are read once and kept in registers, unless they are very long;
// the gradients of weight and bias are sums over the columns, cut into parts.
#pragma once
#include <gradus/base/math.h>

#include <kernels/blocks/launch.cuh>
#include <kernels/blocks/reduce.cuh>
#include <kernels/blocks/teams.cuh>

namespace gradus::kernels {

/// y = (x - mean) * rstd * weight + bias, rstd = 1 / sqrt(var + eps), var the mean square around the mean.
/// x, y: [rows, cols]; weight, bias: [cols] or null; mean, rstd: [rows] in the compute type, kept for the
/// gradient.
template <class T>
struct LayerNormForward {
  static constexpr const char* kName = "layer_norm";
  using C = ComputeType<T>;
  const T* x;
  const T* weight;
  const T* bias;
  T* y;
  C* mean;
  C* rstd;
  int64_t rows, cols;
  double eps;
  Teams teams;

  static constexpr bool supports(int block_size) { return whole_warps(block_size); }
  int64_t groups(int block_size) const { return teams.groups(rows, block_size); }
  size_t shared_bytes(int block_size) const { return shared_size<C>(teams.slots(block_size)); }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    C* scratch = block.template shared<C>(teams.slots(block.size()));
    const TeamMember team = teams.member(block, block.group_index());
    const bool live = team.row < rows;
    const T* from = x + team.row * cols;
    T* to = y + team.row * cols;
    const auto load = [&](int64_t i) { return static_cast<C>(from[i]); };
    with_elements<C>(team, cols, live, load, [&](auto& elements, auto) {
      C sum = 0, squares = 0;
      elements.each([&](int64_t, C& v) { sum += v; });
      const C m = team.reduce(block, sum, Sum{}, scratch) / static_cast<C>(cols);
      elements.each([&](int64_t, C& v) { squares += (v - m) * (v - m); });
      const C variance = team.reduce(block, squares, Sum{}, scratch) / static_cast<C>(cols);
      const C r = math::rsqrt(variance + static_cast<C>(eps));
      elements.each([&](int64_t i, C& v) {
        C normal = (v - m) * r;
        if (weight != nullptr) normal *= static_cast<C>(weight[i]);
        if (bias != nullptr) normal += static_cast<C>(bias[i]);
        to[i] = static_cast<T>(normal);
      });
      if (live && team.rank == 0) mean[team.row] = m, rstd[team.row] = r;
    });
  }
};

/// dx = rstd (g - mean(g) - n mean(g n)), with g = dy * weight and n the normalised row.
template <class T>
struct LayerNormBackward {
  static constexpr const char* kName = "layer_norm_backward";
  using C = ComputeType<T>;
  const T* x;
  const T* weight;
  const T* dy;
  const C* mean;
  const C* rstd;
  T* dx;
  int64_t rows, cols;
  Teams teams;

  static constexpr bool supports(int block_size) { return whole_warps(block_size); }
  int64_t groups(int block_size) const { return teams.groups(rows, block_size); }
  size_t shared_bytes(int block_size) const { return shared_size<C>(teams.slots(block_size)); }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    struct Element {
      C gradient, normal;
    };
    C* scratch = block.template shared<C>(teams.slots(block.size()));
    const TeamMember team = teams.member(block, block.group_index());
    const bool live = team.row < rows;
    const int64_t start = team.row * cols;
    const C m = live ? mean[team.row] : C{0}, r = live ? rstd[team.row] : C{0};
    const auto load = [&](int64_t i) {
      const C g = static_cast<C>(dy[start + i]);
      return Element{weight != nullptr ? g * static_cast<C>(weight[i]) : g,
                     (static_cast<C>(x[start + i]) - m) * r};
    };
    with_elements<Element>(team, cols, live, load, [&](auto& elements, auto) {
      C sum = 0, dot = 0;
      elements.each([&](int64_t, Element& e) { sum += e.gradient, dot += e.gradient * e.normal; });
      const C sum_mean = team.reduce(block, sum, Sum{}, scratch) / static_cast<C>(cols);
      const C dot_mean = team.reduce(block, dot, Sum{}, scratch) / static_cast<C>(cols);
      elements.each([&](int64_t i, Element& e) {
        dx[start + i] = static_cast<T>(r * (e.gradient - sum_mean - e.normal * dot_mean));
      });
    });
  }
};

/// d_weight[i] = sum over the rows of dy * n, d_bias[i] = sum of dy: neighbouring threads have neighbouring
/// columns, and each block part_rows rows. The parts' sums go to sums, [parts, 2, cols].
template <class T>
struct LayerNormWeightBackward {
  static constexpr const char* kName = "layer_norm_weight_backward";
  using C = ComputeType<T>;
  const T* x;
  const T* dy;
  const C* mean;
  const C* rstd;
  C* sums;
  int64_t rows, cols, part_rows;

  static constexpr bool supports(int block_size) { return whole_warps(block_size); }
  int64_t groups(int block_size) const { return tiles(block_size) * blocks_for(rows, part_rows); }
  size_t shared_bytes(int block_size) const { return 2 * shared_size<C>(block_size); }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    C* weights = block.template shared<C>(block.size());
    C* biases = block.template shared<C>(block.size());
    const int width = width_of(block.size()), height = block.size() / width, rank = block.thread_rank();
    const int64_t part = block.group_index() / tiles(block.size());
    const int64_t i = block.group_index() % tiles(block.size()) * width + rank % width;
    const int64_t next = (part + 1) * part_rows, end = next < rows ? next : rows;
    C w = 0, b = 0;
    for (int64_t row = part * part_rows + rank / width; i < cols && row < end; row += height) {
      const C g = static_cast<C>(dy[row * cols + i]);
      w += g * ((static_cast<C>(x[row * cols + i]) - mean[row]) * rstd[row]);
      b += g;
    }
    weights[rank] = w, biases[rank] = b;
    block.sync();
    if (rank >= width || i >= cols) return;
    for (int h = 1; h < height; ++h) w += weights[h * width + rank], b += biases[h * width + rank];
    sums[part * 2 * cols + i] = w;
    sums[(part * 2 + 1) * cols + i] = b;
  }

 private:
  GRADUS_HD static int width_of(int block_size) { return block_size < kWarpSize ? block_size : kWarpSize; }
  GRADUS_HD int64_t tiles(int block_size) const {
    return (cols + width_of(block_size) - 1) / width_of(block_size);
  }
};

/// Adds the parts up, in order; either output may be null. A thread for each column.
template <class T>
struct LayerNormWeightSum {
  static constexpr const char* kName = "layer_norm_weight_sum";
  using C = ComputeType<T>;
  const C* sums;
  T* d_weight;
  T* d_bias;
  int64_t cols, parts;

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int block_size) const { return blocks_for(cols, block_size); }
  size_t shared_bytes(int) const { return 0; }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    const int64_t i = element(block);
    if (i >= cols) return;
    C w = 0, b = 0;
    for (int64_t p = 0; p < parts; ++p) w += sums[p * 2 * cols + i], b += sums[(p * 2 + 1) * cols + i];
    if (d_weight != nullptr) d_weight[i] = static_cast<T>(w);
    if (d_bias != nullptr) d_bias[i] = static_cast<T>(b);
  }
};

}  // namespace gradus::kernels
