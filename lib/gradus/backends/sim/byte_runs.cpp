#include <gradus/backends/sim/byte_runs.h>

#include <utility>

namespace gradus::sim {

ByteRuns::ByteRuns(const TensorArg& tensor) {
  if (tensor.numel() == 0) return;
  start_ = reinterpret_cast<uintptr_t>(tensor.address);
  length_ = element_size(tensor.dtype);
  for (int d = 0; d < tensor.dim(); ++d) {
    if (tensor.sizes[d] == 1 || tensor.strides[d] == 0) continue;
    sizes_[dims_] = tensor.sizes[d];
    strides_[dims_] = static_cast<uintptr_t>(tensor.strides[d]) * element_size(tensor.dtype);
    for (int i = dims_++; i > 0 && strides_[i] < strides_[i - 1]; --i) {
      std::swap(sizes_[i], sizes_[i - 1]);
      std::swap(strides_[i], strides_[i - 1]);
    }
  }
  // While a dimension's steps leave no gap after the run so far, it makes the run longer.
  int dense = 0;
  while (dense < dims_ && strides_[dense] <= length_) {
    length_ += strides_[dense] * static_cast<uintptr_t>(sizes_[dense] - 1);
    ++dense;
  }
  for (int d = dense; d < dims_; ++d) sizes_[d - dense] = sizes_[d], strides_[d - dense] = strides_[d];
  dims_ -= dense;
}

}  // namespace gradus::sim
