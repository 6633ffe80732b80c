// softmax and log_softmax over one dimension, a block for each row.
#pragma once
#include <gradus/base/math.h>

#include <kernels/blocks/launch.cuh>
#include <kernels/blocks/reduce.cuh>
#include <kernels/blocks/rows.cuh>

namespace gradus::kernels {

/// y = exp(x - m) / s, or with Log y = x - m - log(s); m the row's maximum, s the sum of exp(x - m).
/// A row of -inf only, or with a NaN or +inf, gives NaN, as in PyTorch.
template <class T, bool Log>
struct SoftmaxForwardBody {
  static constexpr const char* kName = Log ? "log_softmax" : "softmax";
  const T* x;
  T* y;
  Rows rows;

  static constexpr bool supports(int block_size) { return whole_warps(block_size); }
  int64_t groups(int) const { return rows.count; }
  size_t shared_bytes(int block_size) const { return shared_size<ComputeType<T>>(reduce_slots(block_size)); }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    using C = ComputeType<T>;
    C* scratch = block.template shared<C>(reduce_slots(block.size()));
    const Row row = rows.row(block.group_index());
    C m = -std::numeric_limits<C>::infinity();
    for (int64_t i = block.thread_rank(); i < rows.length; i += block.size())
      m = Max{}(static_cast<C>(x[row.at(i)]), m);
    m = block_reduce(block, m, Max{}, scratch);
    C s = 0;
    for (int64_t i = block.thread_rank(); i < rows.length; i += block.size())
      s += math::exp(static_cast<C>(x[row.at(i)]) - m);
    s = block_reduce(block, s, Sum{}, scratch);
    const C log_s = Log ? math::log(s) : C{0};
    for (int64_t i = block.thread_rank(); i < rows.length; i += block.size()) {
      const C shifted = static_cast<C>(x[row.at(i)]) - m;
      y[row.at(i)] = static_cast<T>(Log ? shifted - log_s : math::exp(shifted) / s);
    }
  }
};

/// From y and the gradient dy of it: dx = y (dy - sum(y dy)), or with Log dx = dy - exp(y) sum(dy).
template <class T, bool Log>
struct SoftmaxBackwardBody {
  static constexpr const char* kName = Log ? "log_softmax_backward" : "softmax_backward";
  const T* y;
  const T* dy;
  T* dx;
  Rows rows;

  static constexpr bool supports(int block_size) { return whole_warps(block_size); }
  int64_t groups(int) const { return rows.count; }
  size_t shared_bytes(int block_size) const { return shared_size<ComputeType<T>>(reduce_slots(block_size)); }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    using C = ComputeType<T>;
    C* scratch = block.template shared<C>(reduce_slots(block.size()));
    const Row row = rows.row(block.group_index());
    C s = 0;
    for (int64_t i = block.thread_rank(); i < rows.length; i += block.size()) {
      const C g = static_cast<C>(dy[row.at(i)]);
      s += Log ? g : g * static_cast<C>(y[row.at(i)]);
    }
    s = block_reduce(block, s, Sum{}, scratch);
    for (int64_t i = block.thread_rank(); i < rows.length; i += block.size()) {
      const C g = static_cast<C>(dy[row.at(i)]), p = static_cast<C>(y[row.at(i)]);
      dx[row.at(i)] = static_cast<T>(Log ? g - math::exp(p) * s : p * (g - s));
    }
  }
};

template <class T>
using SoftmaxForward = SoftmaxForwardBody<T, false>;
template <class T>
using LogSoftmaxForward = SoftmaxForwardBody<T, true>;
template <class T>
using SoftmaxBackward = SoftmaxBackwardBody<T, false>;
template <class T>
using LogSoftmaxBackward = SoftmaxBackwardBody<T, true>;

}  // namespace gradus::kernels

GRADUS_KERNEL_FLOATING(gradus::kernels::SoftmaxForward);
GRADUS_KERNEL_FLOATING(gradus::kernels::LogSoftmaxForward);
GRADUS_KERNEL_FLOATING(gradus::kernels::SoftmaxBackward);
GRADUS_KERNEL_FLOATING(gradus::kernels::LogSoftmaxBackward);
