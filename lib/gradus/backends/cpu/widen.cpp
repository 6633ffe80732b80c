#include <gradus/backends/cpu/widen.h>
#include <gradus/base/log.h>

#include "kernels/elementwise.cuh"

namespace gradus::cpu {
namespace {

struct Same {
  float operator()(float x) const { return x; }
};

// No gaps, in any order of the dimensions: a copy of numel() elements can keep the strides.
bool fills_its_extent(const TensorArg& t) {
  int64_t last = 0;
  for (int d = 0; d < t.sizes.size(); ++d) last += (t.sizes[d] - 1) * t.strides[d];
  return last + 1 == t.numel();
}

}  // namespace

void convert(const TensorArg& from, const TensorArg& to) {
  if (from.dtype == DType::float16) return elementwise::run_unary<float, Half>(Same{}, to, from);
  if (from.dtype == DType::bfloat16) return elementwise::run_unary<float, BFloat16>(Same{}, to, from);
  if (to.dtype == DType::float16) return elementwise::run_unary<Half, float>(Same{}, to, from);
  elementwise::run_unary<BFloat16, float>(Same{}, to, from);
}

void say_widened(DType half) {
  constexpr const char* text =
      " on the cpu: inputs and outputs are rounded to it and the arithmetic is float32's, for oneDNN has "
      "none of it here. Results are right; times say nothing of the type's speed.";
  if (half == DType::float16) GRADUS_WARN_ONCE("float16", text);
  if (half == DType::bfloat16) GRADUS_WARN_ONCE("bfloat16", text);
}

Widened::Widened(const TensorArg& half) : wide_(half), values_(new float[half.numel() + 1]) {
  if (!fills_its_extent(half)) wide_.strides = contiguous_strides(half.sizes);
  wide_.dtype = DType::float32;
  wide_.address = values_.get();
}

}  // namespace gradus::cpu
