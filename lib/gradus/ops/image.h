// What convolution and pooling share: images (N, C, H, W) in one of the two memory orders that kernels know.
#pragma once
#include <gradus/tensor/views.h>

namespace gradus::ops {

/// `t` if it is dense in one of the two orders, else a row-major copy.
inline Tensor dense_image(const Tensor& t) {
  return t.is_contiguous() || t.is_contiguous(MemoryFormat::channels_last) ? t : t.contiguous();
}

/// A new image on `like`'s device and in its memory format.
inline Tensor empty_image(const Shape& sizes, const Tensor& like, DType dtype) {
  return empty(sizes,
               {.dtype = dtype, .device = like.device(), .memory_format = like.suggest_memory_format()});
}

}  // namespace gradus::ops
