#include <gradus/nn/clip_grad.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/cat.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/norm.h>
#include <gradus/ops/unary.h>
#include <gradus/tensor/grad_mode.h>

#include <cmath>

namespace gradus::nn::utils {

static std::vector<Tensor> gradients(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> grads;
  for (const Tensor& p : parameters)
    if (p.grad().defined()) grads.push_back(p.grad());
  return grads;
}

Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type,
                       bool error_if_nonfinite) {
  GRADUS_CHECK(max_norm >= 0, "E-ARG", "clip_grad_norm_: max_norm must not be negative, got ", max_norm,
               hint("a negative bound would turn the gradients around"));
  NoGradGuard no_grad;
  std::vector<Tensor> grads = gradients(parameters), norms;
  if (grads.empty()) return zeros({});
  for (const Tensor& g : grads) norms.push_back(norm(g, norm_type));
  const Tensor total = norm(stack(norms), norm_type);
  if (error_if_nonfinite) {
    const double value = total.item<double>();
    GRADUS_CHECK(std::isfinite(value), "E-NONFINITE", "clip_grad_norm_: the total norm of order ", norm_type,
                 " of the gradients is non-finite (", value, "), so they cannot be clipped",
                 hint("look for the inf or NaN, or skip this step"));
  }
  const Tensor scale = (max_norm / (total + 1e-6)).clamp({}, 1.0);
  for (Tensor& g : grads) g.mul_(scale.to(g.device()).to(g.dtype()));
  return total;
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
  GRADUS_CHECK(clip_value >= 0, "E-ARG", "clip_grad_value_: clip_value must not be negative, got ",
               clip_value);
  NoGradGuard no_grad;
  for (Tensor& g : gradients(parameters)) g.copy_(g.clamp(-clip_value, clip_value));
}

}  // namespace gradus::nn::utils
