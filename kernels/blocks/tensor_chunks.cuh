// Many tensors in one launch: each is cut into chunks, and a block does one.
#pragma once
#include <gradus/base/macros.h>

#include <cstdint>

namespace gradus::kernels {

/// Tensors of a launch: their addresses travel as the kernel's parameters, which may be 4 KB.
inline constexpr int kMaxTensors = 24;

/// Elements begin … end - 1 of a tensor.
struct TensorChunk {
  int tensor;
  int64_t begin, end;
};

class TensorChunks {
 public:
  /// A multiple of what any pack holds, and some of those for each thread of a block.
  static constexpr int64_t kChunk = 4096;

  void push_back(int64_t numel) {
    numel_[count_] = numel;
    first_[count_ + 1] = first_[count_] + (numel + kChunk - 1) / kChunk;
    ++count_;
  }
  int64_t total() const { return first_[count_]; }
  GRADUS_HD TensorChunk find(int64_t chunk) const {
    int tensor = 0;
    while (first_[tensor + 1] <= chunk) ++tensor;
    const int64_t begin = (chunk - first_[tensor]) * kChunk, end = begin + kChunk;
    return {tensor, begin, end < numel_[tensor] ? end : numel_[tensor]};
  }

 private:
  int count_ = 0;
  int64_t first_[kMaxTensors + 1] = {};  // the number of each tensor's first chunk, and that of all
  int64_t numel_[kMaxTensors] = {};
};

}  // namespace gradus::kernels
