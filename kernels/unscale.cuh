// Gradients of a scaled loss, scaled back, with a check for infinities: what dynamic loss scaling needs.
// Operands, and the host loop of cpu and sim.
#pragma once
#include <gradus/base/parallel.h>
#include <gradus/runtime/stream.h>
#include <gradus/runtime/tensor_arg.h>

#include <atomic>
#include <tuple>

namespace gradus {

/// Multiplies all gradients, of one dtype and dense, by inv_scale; found_inf becomes 1 if an element was
/// infinite or NaN, and stays as it is else. inv_scale, found_inf: float32 scalars.
struct UnscaleArgs {
  TensorListArg grads;
  TensorArg inv_scale, found_inf;
  static constexpr auto operands =
      std::tuple{inout(&UnscaleArgs::grads), in(&UnscaleArgs::inv_scale), inout(&UnscaleArgs::found_inf)};
};

/// Neither infinite nor NaN.
template <class C>
GRADUS_HD bool is_finite(C x) {
  return x - x == 0;
}

struct UnscaleKernel {
  template <class T>
  static void run(const UnscaleArgs& a, const Stream&) {
    using C = ComputeType<T>;
    const C scale = static_cast<C>(*a.inv_scale.data<float>());
    std::atomic<bool> all_finite = true;
    for (int i = 0; i < a.grads.count; ++i) {
      T* grad = a.grads[i].data<T>();
      parallel_for(0, a.grads[i].numel(), 32768, [&](int64_t begin, int64_t end) {
        int infinite = 0;
#pragma omp simd reduction(| : infinite)
        for (int64_t k = begin; k < end; ++k) {
          const C g = static_cast<C>(grad[k]);
          infinite |= !is_finite(g);
          grad[k] = static_cast<T>(g * scale);
        }
        if (infinite) all_finite = false;
      });
    }
    if (!all_finite) *a.found_inf.data<float>() = 1;
  }
};

}  // namespace gradus
