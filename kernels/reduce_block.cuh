// Reductions over one dimension, a block for each row: sum, mean, max, min and the places of max and min.
#pragma once
#include <kernels/blocks/launch.cuh>
#include <kernels/blocks/reduce.cuh>
#include <kernels/blocks/rows.cuh>

namespace gradus::kernels {

enum class Reduction { sum, mean, max, min };

/// y[r] = the reduction of row r, computed in ComputeType<Out>. The sum of an empty row is 0, its mean NaN;
/// max and min need at least one element, and are NaN if any element is.
template <class T, class Out, Reduction R>
struct RowReduce {
  static constexpr const char* kName = R == Reduction::sum    ? "sum"
                                       : R == Reduction::mean ? "mean"
                                       : R == Reduction::max  ? "amax"
                                                              : "amin";
  using C = ComputeType<Out>;
  const T* x;
  Out* y;
  Rows rows;

  static constexpr bool supports(int block_size) { return whole_warps(block_size); }
  int64_t groups(int) const { return rows.count; }
  size_t shared_bytes(int block_size) const { return shared_size<C>(reduce_slots(block_size)); }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    C* scratch = block.template shared<C>(reduce_slots(block.size()));
    const Row row = rows.row(block.group_index());
    C total;
    if constexpr (R == Reduction::max)
      total = fold(block, row, first(row), Max{}, scratch);
    else if constexpr (R == Reduction::min)
      total = fold(block, row, first(row), Min{}, scratch);
    else
      total = fold(block, row, C{0}, Sum{}, scratch);
    if constexpr (R == Reduction::mean) total = total / static_cast<C>(rows.length);
    if (block.thread_rank() == 0) y[block.group_index()] = static_cast<Out>(total);
  }

 private:
  GRADUS_HD C first(Row row) const { return static_cast<C>(x[row.at(0)]); }

  template <class B, class Op>
  GRADUS_HD C fold(B& block, Row row, C value, Op op, C* scratch) const {
    for (int64_t i = block.thread_rank(); i < rows.length; i += block.size())
      value = op(value, static_cast<C>(x[row.at(i)]));
    return block_reduce(block, value, op, scratch);
  }
};

/// index[r] = where row r is largest (Op ArgMax) or smallest (ArgMin), value[r] = what stands there (value
/// may be null). The first of equal elements; a NaN wins over all numbers, and the first NaN over the others.
/// Rows must not be empty.
template <class T, class Op>
struct RowFind {
  static constexpr const char* kName = std::is_same_v<Op, ArgMax> ? "argmax" : "argmin";
  using C = ComputeType<T>;
  const T* x;
  T* value;
  int64_t* index;
  Rows rows;

  static constexpr bool supports(int block_size) { return whole_warps(block_size); }
  int64_t groups(int) const { return rows.count; }
  size_t shared_bytes(int block_size) const { return shared_size<Found<C>>(reduce_slots(block_size)); }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    auto* scratch = block.template shared<Found<C>>(reduce_slots(block.size()));
    const Row row = rows.row(block.group_index());
    Found<C> best{C{0}, -1};
    for (int64_t i = block.thread_rank(); i < rows.length; i += block.size())
      best = Op{}(best, Found<C>{static_cast<C>(x[row.at(i)]), i});
    best = block_reduce(block, best, Op{}, scratch);
    if (block.thread_rank() != 0) return;
    index[block.group_index()] = best.index;
    if (value != nullptr) value[block.group_index()] = x[row.at(best.index)];
  }
};

template <class T>
using RowSum = RowReduce<T, T, Reduction::sum>;
template <class T>
using RowMean = RowReduce<T, T, Reduction::mean>;
template <class T>
using RowMax = RowReduce<T, T, Reduction::max>;
template <class T>
using RowMin = RowReduce<T, T, Reduction::min>;
template <class T>
using RowArgMax = RowFind<T, ArgMax>;
template <class T>
using RowArgMin = RowFind<T, ArgMin>;

}  // namespace gradus::kernels

GRADUS_KERNEL_FLOATING(gradus::kernels::RowSum);
GRADUS_KERNEL_FLOATING(gradus::kernels::RowMean);
GRADUS_KERNEL_FLOATING(gradus::kernels::RowMax);
GRADUS_KERNEL_FLOATING(gradus::kernels::RowMin);
GRADUS_KERNEL_FLOATING(gradus::kernels::RowArgMax);
GRADUS_KERNEL_FLOATING(gradus::kernels::RowArgMin);
GRADUS_KERNEL(gradus::kernels::RowReduce<int64_t, int64_t, gradus::kernels::Reduction::sum>);
GRADUS_KERNEL(gradus::kernels::RowReduce<bool, int64_t, gradus::kernels::Reduction::sum>);
GRADUS_KERNEL(gradus::kernels::RowArgMax<int64_t>);
GRADUS_KERNEL(gradus::kernels::RowMax<int64_t>);
