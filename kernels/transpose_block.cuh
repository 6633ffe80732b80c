// Matrix transpose through a tile of shared memory, so that both the reads and the writes run along rows.
#pragma once
#include <kernels/blocks/launch.cuh>

namespace gradus::kernels {

/// y[b, j, i] = x[b, i, j]; x [batch, rows, cols], y [batch, cols, rows], both contiguous. A block for each
/// tile.
template <class T>
struct Transpose {
  static constexpr const char* kName = "transpose";
  static constexpr int kTile = 32;
  const T* x;
  T* y;
  int64_t batch, rows, cols;

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int) const { return batch * blocks_for(rows, kTile) * blocks_for(cols, kTile); }
  size_t shared_bytes(int) const { return shared_size<T>(kTile * (kTile + 1)); }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    T* tile =
        block.template shared<T>(kTile * (kTile + 1));  // one column more: a column then spans all banks
    const int64_t across = (cols + kTile - 1) / kTile, down = (rows + kTile - 1) / kTile;
    const int64_t j0 = block.group_index() % across * kTile, i0 = block.group_index() / across % down * kTile;
    const int64_t plane = block.group_index() / (across * down) * rows * cols;
    for (int k = block.thread_rank(); k < kTile * kTile; k += block.size()) {
      const int64_t i = i0 + k / kTile, j = j0 + k % kTile;
      if (i < rows && j < cols) tile[k / kTile * (kTile + 1) + k % kTile] = x[plane + i * cols + j];
    }
    block.sync();
    for (int k = block.thread_rank(); k < kTile * kTile; k += block.size()) {
      const int64_t i = i0 + k % kTile, j = j0 + k / kTile;
      if (i < rows && j < cols) y[plane + j * rows + i] = tile[k % kTile * (kTile + 1) + k / kTile];
    }
  }
};

}  // namespace gradus::kernels

GRADUS_KERNEL_FLOATING(gradus::kernels::Transpose);
