// A bias where a vendor library does not add it itself. Internal to cuda/.
#pragma once
#include <gradus/runtime/kernel_table.h>

#include "kernels/arithmetic.cuh"
#include "kernels/copy.cuh"

namespace gradus::cuda {

/// A vector as a tensor of `rank` dimensions that lies along `dim`.
inline TensorArg along(TensorArg vector, int dim, int rank) {
  Shape sizes = Shape::filled(rank, 1);
  sizes[dim] = vector.sizes[0];
  vector.sizes = sizes;
  vector.strides = contiguous_strides(sizes);
  return vector;
}

/// y += bias, along dimension `dim`; both have the same floating dtype.
inline void add_bias(const TensorArg& y, const TensorArg& bias, int dim, const Stream& stream) {
  const BinaryArgs args{y, along(bias, dim, y.dim()), y, 0};
  visit_dtype<kFloatingTypes>(
      y.dtype, [&]<class T>(TypeTag<T>) { cuda_kernel<BinaryKernel<kernels::Add>, T>(args, stream); });
}

/// y = bias, or 0 where there is none: what a sum of nothing gives.
inline void set_to_bias(const TensorArg& y, const TensorArg& bias, int dim, const Stream& stream) {
  if (bias.present())
    kernels::copy_cuda({along(bias, dim, y.dim()), y}, stream);
  else
    kernels::fill_cuda({y, 0.0}, stream);
}

}  // namespace gradus::cuda
