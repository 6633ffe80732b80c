// Many small tensors as few large ones, since a collective costs more than its bytes. Internal to
// distributed/.
#pragma once
#include <gradus/tensor/tensor.h>

#include <vector>

namespace gradus::distributed {

/// Which tensors go together: indices into `tensors`, in their order, of one dtype and device each. A bucket
/// is full when it has at least `limit` bytes, the first of each kind at `first_limit`.
std::vector<std::vector<size_t>> plan_buckets(const std::vector<Tensor>& tensors, size_t first_limit,
                                              size_t limit);

/// New memory for some tensors, in one piece.
struct Bucket {
  Tensor flat;                ///< (elements of all)
  std::vector<Tensor> views;  ///< into it, in the sizes and strides of the tensors
};
Bucket make_bucket(const std::vector<Tensor>& tensors);

/// Every rank's tensors become those of rank `src`. Waits.
void broadcast_coalesced(const std::vector<Tensor>& tensors, int src);

}  // namespace gradus::distributed
