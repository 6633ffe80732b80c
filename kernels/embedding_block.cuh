// Rows of a table by index, and the gradient of the table.
#pragma once
#include <kernels/blocks/launch.cuh>
#include <limits>

namespace gradus::kernels {

/// y[i, :] = table[index[i], :]; table [vocabulary, width], y [count, width]. A thread for each element.
/// Indices are checked by the host before; one out of range gives a row of NaN.
template <class T>
struct EmbeddingForward {
  static constexpr const char* kName = "embedding";
  const T* table;
  const int64_t* index;
  T* y;
  int64_t vocabulary, width, count;

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int block_size) const { return blocks_for(count * width, block_size); }
  size_t shared_bytes(int) const { return 0; }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    const int64_t i = element(block);
    if (i >= count * width) return;
    const int64_t row = index[i / width];
    const bool valid = row >= 0 && row < vocabulary;
    y[i] = valid ? table[row * width + i % width] : static_cast<T>(std::numeric_limits<float>::quiet_NaN());
  }
};

/// dtable[index[i], :] += dy[i, :] for i in order, except where index[i] is padding_idx (-1: no such). A
/// thread for each column, so rows that occur twice need no atomics. dtable, in the compute type, holds zeros
/// before.
template <class T>
struct EmbeddingBackward {
  static constexpr const char* kName = "embedding_backward";
  const T* dy;
  const int64_t* index;
  ComputeType<T>* dtable;
  int64_t vocabulary, width, count, padding_idx;

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int block_size) const { return blocks_for(width, block_size); }
  size_t shared_bytes(int) const { return 0; }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    const int64_t column = element(block);
    if (column >= width) return;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = index[i];
      if (row == padding_idx || row < 0 || row >= vocabulary) continue;
      dtable[row * width + column] += static_cast<ComputeType<T>>(dy[i * width + column]);
    }
  }
};

}  // namespace gradus::kernels

GRADUS_KERNEL_FLOATING(gradus::kernels::EmbeddingForward);
GRADUS_KERNEL_FLOATING(gradus::kernels::EmbeddingBackward);
