// Inclusive running sum along one dimension, a block for each row.
#pragma once
#include <kernels/blocks/launch.cuh>
#include <kernels/blocks/rows.cuh>

namespace gradus::kernels {

/// y[i] = x[0] + … + x[i], computed in ComputeType<Out>. A block takes as many elements at a time as it has
/// threads and scans them by doubling (Hillis and Steele): after step d, each holds the sum of the 2d
/// elements that end with it.
template <class T, class Out>
struct CumSumBody {
  static constexpr const char* kName = "cumsum";
  using C = ComputeType<Out>;
  const T* x;
  Out* y;
  Rows rows;

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int) const { return rows.count; }
  size_t shared_bytes(int block_size) const { return 2 * shared_size<C>(block_size); }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    const int rank = block.thread_rank(), size = block.size();
    C* sums = block.template shared<C>(size);
    C* next = block.template shared<C>(size);
    const Row row = rows.row(block.group_index());
    C before = 0;  // the sum of all earlier tiles
    for (int64_t tile = 0; tile < rows.length; tile += size) {
      const int64_t i = tile + rank;
      sums[rank] = i < rows.length ? static_cast<C>(x[row.at(i)]) : C{0};
      block.sync();
      for (int d = 1; d < size; d *= 2) {
        next[rank] = rank >= d ? sums[rank - d] + sums[rank] : sums[rank];
        block.sync();
        C* const swap = sums;
        sums = next;
        next = swap;
      }
      if (i < rows.length) y[row.at(i)] = static_cast<Out>(before + sums[rank]);
      before += sums[size - 1];
      block.sync();  // all have read the last sum before the next tile is written
    }
  }
};

template <class T>
using CumSum = CumSumBody<T, T>;

}  // namespace gradus::kernels

GRADUS_KERNEL_FLOATING(gradus::kernels::CumSum);
GRADUS_KERNEL(gradus::kernels::CumSum<int64_t>);
