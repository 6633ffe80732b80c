// Running sums along one dimension of strided tensors: a thread for each row where neighbouring rows lie side
// by side, else a block for each, or, of few long rows, for each part of one.
#pragma once
#include <kernels/blocks/launch.cuh>
#include <kernels/blocks/loop_dims.cuh>
#include <kernels/blocks/reduce.cuh>

namespace gradus::kernels {

/// What the bodies share. Sums are made in double, or int64: a float would stop growing where its terms fall
/// below half an ulp.
template <class T>
struct CumSumTask {
  using C = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
  using Y = std::conditional_t<std::is_integral_v<T>, int64_t, T>;
  const T* x;
  Y* y;
  LoopDims rows;
  int64_t count, length, x_step, y_step;  // rows, their elements and the steps between these
  bool reverse;

  /// Where the k-th summand is.
  GRADUS_HD int64_t place(int64_t k) const { return reverse ? length - 1 - k : k; }
  GRADUS_HD C load(const Offsets& row, int64_t k) const {
    return static_cast<C>(static_cast<ComputeType<T>>(x[row.x + place(k) * x_step]));
  }
  GRADUS_HD void store(const Offsets& row, int64_t k, C sum) const {
    y[row.y + place(k) * y_step] = static_cast<Y>(static_cast<ComputeType<Y>>(sum));
  }
};

/// A thread for each row.
template <class T>
struct CumSumColumns {
  static constexpr const char* kName = "cumsum";
  using C = typename CumSumTask<T>::C;
  CumSumTask<T> task;

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int block_size) const { return blocks_for(task.count, block_size); }
  size_t shared_bytes(int) const { return 0; }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    if (element(block) >= task.count) return;
    constexpr int kInFlight = 4;
    const Offsets row = task.rows.at(element(block));
    C sum = 0;
    int64_t k = 0;
    for (; k + kInFlight <= task.length; k += kInFlight) {
      C next[kInFlight];
      GRADUS_UNROLL
      for (int j = 0; j < kInFlight; ++j) next[j] = task.load(row, k + j);
      GRADUS_UNROLL
      for (int j = 0; j < kInFlight; ++j) task.store(row, k + j, sum += next[j]);
    }
    for (; k < task.length; ++k) task.store(row, k, sum += task.load(row, k));
  }
};

/// The sum of each part of each row, for CumSumRows: totals, [rows, parts].
template <class T>
struct CumSumTotals {
  static constexpr const char* kName = "cumsum_totals";
  using C = typename CumSumTask<T>::C;
  CumSumTask<T> task;
  C* totals;
  int64_t parts, part_length;

  static constexpr bool supports(int block_size) { return whole_warps(block_size); }
  int64_t groups(int) const { return task.count * parts; }
  size_t shared_bytes(int block_size) const { return shared_size<C>(reduce_slots(block_size)); }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    C* scratch = block.template shared<C>(reduce_slots(block.size()));
    const int64_t part = block.group_index() % parts, end = (part + 1) * part_length;
    const Offsets row = task.rows.at(block.group_index() / parts);
    C sum = 0;
    for (int64_t k = part * part_length + block.thread_rank(); k < end && k < task.length; k += block.size())
      sum += task.load(row, k);
    sum = block_reduce(block, sum, Sum{}, scratch);
    if (block.thread_rank() == 0) totals[block.group_index()] = sum;
  }
};

/// A block for each part of a row; `totals`, CumSumTotals's, is not read if there is one. The block takes a
/// few elements a thread at a time and scans the threads' sums by doubling (Hillis and Steele): after step d,
/// each holds the sum of the 2d threads that end with it.
template <class T>
struct CumSumRows {
  static constexpr const char* kName = "cumsum";
  static constexpr int kEach = 4;
  using C = typename CumSumTask<T>::C;
  CumSumTask<T> task;
  const C* totals;
  int64_t parts, part_length;

  static constexpr bool supports(int block_size) { return whole_warps(block_size); }
  int64_t groups(int) const { return task.count * parts; }
  size_t shared_bytes(int block_size) const {
    return 2 * shared_size<C>(block_size) + shared_size<C>(reduce_slots(block_size));
  }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    C* sums = block.template shared<C>(block.size());
    C* next = block.template shared<C>(block.size());
    C* scratch = block.template shared<C>(reduce_slots(block.size()));
    const int64_t part = block.group_index() % parts;
    const Offsets row = task.rows.at(block.group_index() / parts);
    const int64_t after = (part + 1) * part_length, end = after < task.length ? after : task.length;
    C before = 0;  // the sum of all that precedes
    for (int64_t p = block.thread_rank(); p < part; p += block.size())
      before += totals[block.group_index() - part + p];
    before = block_reduce(block, before, Sum{}, scratch);
    for (int64_t tile = part * part_length; tile < end; tile += int64_t{kEach} * block.size()) {
      const int64_t first = tile + int64_t{kEach} * block.thread_rank();
      C own[kEach], sum = 0;
      GRADUS_UNROLL
      for (int j = 0; j < kEach; ++j) own[j] = sum += first + j < end ? task.load(row, first + j) : C{0};
      scan(block, sum, sums, next);
      const C start = before + (block.thread_rank() > 0 ? sums[block.thread_rank() - 1] : C{0});
      GRADUS_UNROLL
      for (int j = 0; j < kEach; ++j)
        if (first + j < end) task.store(row, first + j, start + own[j]);
      before += sums[block.size() - 1];
      block.sync();  // all have read the sums before the next tile's are written
    }
  }

 private:
  // sums[t] = the sum of the values of threads 0 … t.
  template <class B>
  GRADUS_HD static void scan(B& block, C value, C*& sums, C*& next) {
    const int rank = block.thread_rank();
    sums[rank] = value;
    block.sync();
    for (int d = 1; d < block.size(); d *= 2) {
      next[rank] = rank >= d ? sums[rank - d] + sums[rank] : sums[rank];
      block.sync();
      C* const swap = sums;
      sums = next, next = swap;
    }
  }
};

}  // namespace gradus::kernels
