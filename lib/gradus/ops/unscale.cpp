#include "kernels/unscale.cuh"

#include <gradus/ops/common.h>
#include <gradus/ops/unscale.h>

namespace gradus {
namespace {

constexpr auto kUnscale = KernelTable<UnscaleArgs>("unscale_").everywhere<UnscaleKernel, kFloatingTypes>();

void check_scalar(const char* name, const Tensor& t) {
  ops::check_defined("unscale_", t);
  GRADUS_CHECK(t.dtype() == kFloat32, "E-DTYPE", "unscale_: ", name, " must be float32, got ",
               to_string(t.dtype()));
  GRADUS_CHECK(t.numel() == 1, "E-SHAPE", "unscale_: ", name, " must have one element, got shape ",
               t.sizes());
}

void check(const Tensor& grad, const Tensor& found_inf, const Tensor& inv_scale) {
  ops::check_same_device("unscale_", {{"grad", grad}, {"found_inf", found_inf}, {"inv_scale", inv_scale}});
  GRADUS_CHECK(grad.is_floating_point(), "E-DTYPE", "unscale_: expected floating point gradients, got ",
               to_string(grad.dtype()));
  GRADUS_CHECK(grad.is_dense(), "E-LAYOUT", "unscale_: a gradient of shape ", grad.sizes(), " with strides ",
               grad.strides(), " has gaps in memory", hint("use a contiguous() copy"));
}

}  // namespace

void unscale_(const std::vector<Tensor>& grads, const Tensor& found_inf, const Tensor& inv_scale) {
  check_scalar("found_inf", found_inf);
  check_scalar("inv_scale", inv_scale);
  for (const Tensor& grad : grads) check(grad, found_inf, inv_scale);
  UnscaleArgs args{{}, inv_scale.arg(), found_inf.arg()};
  for (size_t i = 0; i < grads.size(); ++i) {
    args.grads.push_back(grads[i].arg());
    grads[i].bump_version();
    const bool last = i + 1 == grads.size() || grads[i + 1].dtype() != grads[i].dtype();
    if (!last && args.grads.count < TensorListArg::kCapacity) continue;
    launch(kUnscale, grads[i].dtype(), ops::stream_of(grads[i]), args);
    args.grads.count = 0;
  }
  found_inf.bump_version();
}

}  // namespace gradus
