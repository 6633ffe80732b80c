// Layer norm over the last dimension: a block for each row; the gradients of weight and bias a thread for
// each column.
#pragma once
#include <gradus/base/math.h>

#include <kernels/blocks/launch.cuh>
#include <kernels/blocks/reduce.cuh>

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

  static constexpr bool supports(int block_size) { return whole_warps(block_size); }
  int64_t groups(int) const { return rows; }
  size_t shared_bytes(int block_size) const { return shared_size<C>(reduce_slots(block_size)); }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    C* scratch = block.template shared<C>(reduce_slots(block.size()));
    const T* row = x + block.group_index() * cols;
    C sum = 0;
    for (int64_t i = block.thread_rank(); i < cols; i += block.size()) sum += static_cast<C>(row[i]);
    const C m = block_reduce(block, sum, Sum{}, scratch) / static_cast<C>(cols);
    C squares = 0;
    for (int64_t i = block.thread_rank(); i < cols; i += block.size()) {
      const C d = static_cast<C>(row[i]) - m;
      squares += d * d;
    }
    const C variance = block_reduce(block, squares, Sum{}, scratch) / static_cast<C>(cols);
    const C r = math::rsqrt(variance + static_cast<C>(eps));
    for (int64_t i = block.thread_rank(); i < cols; i += block.size()) {
      const C normal = (static_cast<C>(row[i]) - m) * r;
      const C scaled = weight != nullptr ? normal * static_cast<C>(weight[i]) : normal;
      y[block.group_index() * cols + i] =
          static_cast<T>(bias != nullptr ? scaled + static_cast<C>(bias[i]) : scaled);
    }
    if (block.thread_rank() != 0) return;
    mean[block.group_index()] = m;
    rstd[block.group_index()] = r;
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

  static constexpr bool supports(int block_size) { return whole_warps(block_size); }
  int64_t groups(int) const { return rows; }
  size_t shared_bytes(int block_size) const { return shared_size<C>(reduce_slots(block_size)); }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    C* scratch = block.template shared<C>(reduce_slots(block.size()));
    const int64_t row = block.group_index();
    C sum = 0, dot = 0;
    for (int64_t i = block.thread_rank(); i < cols; i += block.size()) {
      sum += gradient(row, i);
      dot += gradient(row, i) * normal(row, i);
    }
    const C sum_mean = block_reduce(block, sum, Sum{}, scratch) / static_cast<C>(cols);
    const C dot_mean = block_reduce(block, dot, Sum{}, scratch) / static_cast<C>(cols);
    for (int64_t i = block.thread_rank(); i < cols; i += block.size())
      dx[row * cols + i] =
          static_cast<T>(rstd[row] * (gradient(row, i) - sum_mean - normal(row, i) * dot_mean));
  }

 private:
  GRADUS_HD C gradient(int64_t row, int64_t i) const {
    const C g = static_cast<C>(dy[row * cols + i]);
    return weight != nullptr ? g * static_cast<C>(weight[i]) : g;
  }
  GRADUS_HD C normal(int64_t row, int64_t i) const {
    return (static_cast<C>(x[row * cols + i]) - mean[row]) * rstd[row];
  }
};

/// dweight[i] = sum over rows of dy * n, dbias[i] = sum of dy, rows in order; either output may be null.
template <class T>
struct LayerNormWeightBackward {
  static constexpr const char* kName = "layer_norm_weight_backward";
  using C = ComputeType<T>;
  const T* x;
  const T* dy;
  const C* mean;
  const C* rstd;
  T* dweight;
  T* dbias;
  int64_t rows, cols;

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int block_size) const { return blocks_for(cols, block_size); }
  size_t shared_bytes(int) const { return 0; }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    const int64_t i = element(block);
    if (i >= cols) return;
    C w = 0, b = 0;
    for (int64_t row = 0; row < rows; ++row) {
      const C g = static_cast<C>(dy[row * cols + i]);
      w += g * (static_cast<C>(x[row * cols + i]) - mean[row]) * rstd[row];
      b += g;
    }
    if (dweight != nullptr) dweight[i] = static_cast<T>(w);
    if (dbias != nullptr) dbias[i] = static_cast<T>(b);
  }
};

}  // namespace gradus::kernels

GRADUS_KERNEL_FLOATING(gradus::kernels::LayerNormForward);
GRADUS_KERNEL_FLOATING(gradus::kernels::LayerNormBackward);
GRADUS_KERNEL_FLOATING(gradus::kernels::LayerNormWeightBackward);
