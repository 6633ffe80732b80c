// The bytes of a strided operand, as runs of neighbours: x[:, :k] and x[:, k:] lie among each other in memory
// and share no byte.
#pragma once
#include <gradus/runtime/tensor_arg.h>

#include <cstdint>

namespace gradus::sim {

/// All runs of an operand, lowest stride innermost. A dense operand (in any order of dimensions) is one run;
/// dimensions of stride 0 and views that overlap themselves give no byte twice within a run.
class ByteRuns {
 public:
  explicit ByteRuns(const TensorArg& tensor);

  /// Calls f(begin, end) with the addresses of each run, of the first `most` of them.
  template <class F>
  void for_each(int64_t most, const F& f) const {
    int64_t at[kMaxDims] = {};
    uintptr_t begin = start_;
    for (int64_t left = length_ ? most : 0; left > 0; --left) {
      f(begin, begin + length_);
      int d = 0;
      for (; d < dims_; ++d) {
        begin += strides_[d];
        if (++at[d] < sizes_[d]) break;
        begin -= strides_[d] * static_cast<uintptr_t>(sizes_[d]);
        at[d] = 0;
      }
      if (d == dims_) return;
    }
  }

 private:
  uintptr_t start_ = 0;
  size_t length_ = 0;  // of each run; 0 for an operand without elements
  int dims_ = 0;       // the runs' grid
  int64_t sizes_[kMaxDims];
  uintptr_t strides_[kMaxDims];  // bytes
};

}  // namespace gradus::sim
