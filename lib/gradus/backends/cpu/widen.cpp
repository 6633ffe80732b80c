#include <gradus/backends/cpu/widen.h>

#include "kernels/elementwise.cuh"

namespace gradus::cpu {
namespace {

struct Same {
  float operator()(float x) const { return x; }
};

}  // namespace

void convert(const TensorArg& from, const TensorArg& to) {
  if (from.dtype == DType::float16) return elementwise::run_unary<float, Half>(Same{}, to, from);
  if (from.dtype == DType::bfloat16) return elementwise::run_unary<float, BFloat16>(Same{}, to, from);
  if (to.dtype == DType::float16) return elementwise::run_unary<Half, float>(Same{}, to, from);
  elementwise::run_unary<BFloat16, float>(Same{}, to, from);
}

Widened::Widened(const TensorArg& half) : wide_(half), values_(new float[half.numel() + 1]) {
  const bool channels_last = half.strides == channels_last_strides(half.sizes);
  wide_.strides = channels_last ? half.strides : contiguous_strides(half.sizes);
  wide_.dtype = DType::float32;
  wide_.address = values_.get();
}

}  // namespace gradus::cpu
