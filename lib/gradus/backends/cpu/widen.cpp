#include <gradus/backends/cpu/widen.h>
#include <gradus/base/log.h>

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

void say_widened(DType half) {
  constexpr const char* text =
      ": this processor multiplies no matrices of it; inputs and outputs are rounded to it and the "
      "arithmetic "
      "is float32's. Results are right, times say nothing of the type's speed.";
  if (half == DType::float16) GRADUS_WARN_ONCE("float16 on the cpu", text);
  if (half == DType::bfloat16) GRADUS_WARN_ONCE("bfloat16 on the cpu", text);
}

Widened::Widened(const TensorArg& half) : wide_(half), values_(new float[half.numel() + 1]) {
  const bool channels_last = half.strides == channels_last_strides(half.sizes);
  wide_.strides = channels_last ? half.strides : contiguous_strides(half.sizes);
  wide_.dtype = DType::float32;
  wide_.address = values_.get();
}

}  // namespace gradus::cpu
