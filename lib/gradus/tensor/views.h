// Tensors over a given storage, without history. The differentiable views are in gradus/ops/view.h.
#pragma once
#include <gradus/tensor/tensor.h>

namespace gradus {

/// What a factory makes: torch's TensorOptions. Without a dtype: float32, or what the values given ask for.
struct TensorOptions {
  std::optional<DType> dtype = {};
  Device device = {};
  bool requires_grad = false;
  MemoryFormat memory_format = MemoryFormat::contiguous;
  bool pin_memory = false;  ///< in page-locked memory for current_accelerator(); the device must be the cpu
};

/// A new tensor with undefined contents.
Tensor empty(const Shape& sizes, const TensorOptions& options = {});
Tensor empty(const Shape& sizes, DType dtype, Device device = {});
/// Same sizes, dtype and device; dense in the order of `like`'s strides where `like` is dense, else
/// row-major.
Tensor empty_like(const Tensor& like);
Tensor empty_like(const Tensor& like, DType dtype);
/// With the given dense strides (in elements); they must be a permutation of row-major ones.
Tensor empty_strided(const Shape& sizes, const Shape& strides, DType dtype, Device device);
/// A tensor over memory of the caller's, row-major; `deleter` is called when the last view is gone.
Tensor from_blob(void* data, const Shape& sizes, DType dtype, std::function<void(void*)> deleter = {});

namespace detail {
/// On the cpu, in memory pinned for `target`'s type; strides as of empty_strided().
Tensor empty_pinned(const Shape& sizes, const Shape& strides, DType dtype, Device target);
/// A view into `base`'s storage at `offset` (in elements), without history.
Tensor make_view(const Tensor& base, const Shape& sizes, const Shape& strides, int64_t offset);
bool has_strides(const Shape& sizes, const Shape& strides, const Shape& wanted);
}  // namespace detail

}  // namespace gradus
