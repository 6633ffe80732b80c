// Rows shared out among the threads of blocks: a whole block to a long row, a few lanes of a warp to a short
// one, so that a thousand rows of ten do not leave most threads idle.
#pragma once
#include <kernels/blocks/reduce.cuh>
#include <type_traits>

namespace gradus::kernels {

/// A thread's place: the row it works on, its rank among the threads of that row and their number.
struct TeamMember {
  int64_t row;
  int rank, size;
  bool whole_block;

  /// Folds `value` over the threads of each row; all threads of the block call it, and each gets its row's
  /// result. `scratch`: Teams::slots() elements of shared memory.
  template <Block B, class T, class Op>
  GRADUS_HD T reduce(B& block, T value, Op op, T* scratch) const {
    if (whole_block) return block_reduce(block, value, op, scratch);
    for (int mask = size / 2; mask > 0; mask /= 2) value = op(value, block.shuffle_xor(value, mask));
    return value;
  }
};

/// `lanes` neighbouring threads for each row, a power of two of at most a warp; 0: a block for each.
struct Teams {
  int lanes = 0;

  /// A block where a row keeps it busy, else as many lanes as a row has elements.
  static Teams for_length(int64_t length) {
    if (length > 16 * kWarpSize) return {0};
    int lanes = 1;
    while (lanes < kWarpSize && lanes < length) lanes *= 2;
    return {lanes};
  }

  /// Rows that a block of this size has at a time.
  GRADUS_HD int rows_of(int block_size) const { return lanes == 0 ? 1 : block_size / team_size(block_size); }
  int64_t groups(int64_t rows, int block_size) const { return blocks_for(rows, rows_of(block_size)); }
  GRADUS_HD int slots(int block_size) const { return lanes == 0 ? reduce_slots(block_size) : 0; }
  /// The calling thread's place in the `group`-th lot of rows; row may be past the last.
  template <Block B>
  GRADUS_HD TeamMember member(const B& block, int64_t group) const {
    if (lanes == 0) return {group, block.thread_rank(), block.size(), true};
    const int size = team_size(block.size());
    return {group * (block.size() / size) + block.thread_rank() / size, block.thread_rank() % size, size,
            false};
  }

 private:
  GRADUS_HD int team_size(int block_size) const {
    const int warp = block_size < kWarpSize ? block_size : kWarpSize;
    return lanes < warp ? lanes : warp;
  }
};

/// Elements of a row that a thread keeps in registers.
inline constexpr int kHeld = 8;

/// The calling thread's elements of a row, read once and kept.
template <class E>
struct HeldElements {
  E value[kHeld];
  int64_t first, step, n;

  /// f(i, element); what f makes of the element stays.
  template <class F>
  GRADUS_HD void each(const F& f) {
    GRADUS_UNROLL
    for (int j = 0; j < kHeld; ++j) {
      const int64_t i = first + j * step;
      if (i < n) f(i, value[j]);
    }
  }
};
/// The same of a longer row, read each time; what f makes of them is lost.
template <class E, class Load>
struct StreamedElements {
  Load load;
  int64_t first, step, n;

  template <class F>
  GRADUS_HD void each(const F& f) {
    for (int64_t i = first; i < n; i += step) {
      E value = load(i);
      f(i, value);
    }
  }
};

/// Calls run(elements, std::bool_constant of whether they are held) for the thread's share of a row of
/// `length` elements load(0) …; none for a row past the last.
template <class E, class Load, class Run>
GRADUS_HD void with_elements(const TeamMember& team, int64_t length, bool live, const Load& load,
                             const Run& run) {
  const int64_t n = live ? length : 0;
  if (length <= static_cast<int64_t>(kHeld) * team.size) {
    HeldElements<E> held{{}, team.rank, team.size, n};
    GRADUS_UNROLL
    for (int j = 0; j < kHeld; ++j) {
      const int64_t i = held.first + j * held.step;
      if (i < n) held.value[j] = load(i);
    }
    run(held, std::true_type{});
  } else {
    StreamedElements<E, Load> streamed{load, team.rank, team.size, n};
    run(streamed, std::false_type{});
  }
}

}  // namespace gradus::kernels
