// Reading by index on blocks of threads; put_block.cuh writes. Each thread checks the indices that it uses:
// on a GPU nobody has read them before.
#pragma once
#include <kernels/blocks/device_fault.cuh>
#include <kernels/blocks/launch.cuh>
#include <kernels/blocks/nest.cuh>

namespace gradus::kernels {

/// The dimension that is indexed, as a body carries it.
struct CheckedIndex {
  int64_t size, stride;
  int dim;
  bool negative;  // may indices count from the end?
  FaultSite site;

  /// `index`, counted from the front; one out of range is reported, and -1.
  GRADUS_HD int64_t at(int64_t index) const {
    if (index >= (negative ? -size : 0) && index < size) return index < 0 ? index + size : index;
    site.report(index, dim, size);
    return -1;
  }
};

/// y[e] = x[e + index[e] * stride], in words of type W; the nest's operands are y, x and index.
template <class W>
struct Pick {
  static constexpr const char* kName = "pick";
  static constexpr int kEach = 4;  // words of a thread, all on their way at once
  W* y;
  const W* x;
  const int64_t* index;
  Nest<3> nest;
  CheckedIndex along;

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int block_size) const { return blocks_for(nest.count, kEach * block_size); }
  size_t shared_bytes(int) const { return 0; }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    const auto step = static_cast<uint32_t>(block.size());
    const uint32_t first = static_cast<uint32_t>(block.group_index()) * step * kEach +
                           static_cast<uint32_t>(block.thread_rank());
    if (first >= nest.count) return;
    uint32_t i[kEach], at[kEach][3];
    GRADUS_UNROLL
    for (uint32_t j = 0; j < kEach; ++j)  // past the end the thread's first once more
      i[j] = first + j * step < nest.count ? first + j * step : first;
    nest.locate(i, at);
    int64_t row[kEach];
    GRADUS_UNROLL
    for (int j = 0; j < kEach; ++j) row[j] = index[at[j][2]];
    W word[kEach];
    GRADUS_UNROLL
    for (int j = 0; j < kEach; ++j) {
      const int64_t place = along.at(row[j]);
      if (place < 0) return;
      word[j] = x[at[j][1] + place * along.stride];
    }
    GRADUS_UNROLL
    for (uint32_t j = 0; j < kEach; ++j)
      if (first + j * step < nest.count) y[at[j][0]] = word[j];
  }
};

/// y = before * scale + index, where indices count from the front; operands y, before and index.
struct LinearIndex {
  static constexpr const char* kName = "linear_index";
  int64_t* y;
  const int64_t *before, *index;
  Nest<3> nest;
  CheckedIndex along;
  int64_t scale;  // 0: there is nothing before

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int block_size) const { return blocks_for(nest.count, block_size); }
  size_t shared_bytes(int) const { return 0; }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    const int64_t i = element(block);
    if (i >= nest.count) return;
    uint32_t at[1][3];
    nest.locate({static_cast<uint32_t>(i)}, at);
    const int64_t place = along.at(index[at[0][2]]);
    if (place >= 0) y[at[0][0]] = before[at[0][1]] * scale + place;
  }
};

}  // namespace gradus::kernels
