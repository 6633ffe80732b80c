#include "kernels/activation.cuh"

#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/autocast.h>
#include <gradus/ops/compare.h>
#include <gradus/ops/pointwise.h>
#include <gradus/ops/unary.h>
#include <gradus/ops/where.h>

namespace gradus {
namespace {

using namespace kernels;
using ops::binary_table;
using ops::floating_unary;
using ops::Keep;
using ops::unary;
using ops::unary_table;

constexpr auto kRelu = unary_table<Relu, kNumericTypes>("relu");
constexpr auto kLeakyRelu = unary_table<LeakyRelu>("leaky_relu");
constexpr auto kSigmoid = unary_table<Sigmoid>("sigmoid");
constexpr auto kTanh = unary_table<Tanh>("tanh");
constexpr auto kSilu = unary_table<Silu>("silu");
constexpr auto kGelu = unary_table<Gelu>("gelu");
constexpr auto kGeluTanh = unary_table<GeluTanh>("gelu");
constexpr auto kSoftplus = unary_table<Softplus>("softplus");
constexpr auto kReluGrad = binary_table<ReluGrad>("relu_backward");
constexpr auto kLeakyReluGrad = binary_table<LeakyReluGrad>("leaky_relu_backward");
constexpr auto kSigmoidGrad = binary_table<SigmoidGrad>("sigmoid_backward");
constexpr auto kTanhGrad = binary_table<TanhGrad>("tanh_backward");
constexpr auto kSiluGrad = binary_table<SiluGrad>("silu_backward");
constexpr auto kGeluGrad = binary_table<GeluGrad>("gelu_backward");
constexpr auto kGeluTanhGrad = binary_table<GeluTanhGrad>("gelu_backward");

// A derivative is written twice: as one kernel, which is what training runs, and with differentiable
// operations for a pass that is itself recorded (create_graph). tests/ops compares the two.
bool recorded() { return GradMode::is_enabled(); }

Tensor fused(const KernelTable<BinaryArgs>& table, const Tensor& dy, const Tensor& kept, Scalar p = 0) {
  Tensor dx = empty_like(kept);
  launch(table, dx.dtype(), ops::stream_of(dx), BinaryArgs{dy.arg(), kept.arg(), dx.arg(), p});
  return dx;
}

Tensor relu_rule(const Tensor& g, const Tensor& y, Scalar, Scalar) {
  return recorded() ? masked_fill(g, y <= 0, 0) : fused(kReluGrad, g, y);
}
// [snippet leaky_relu_rule]
Tensor leaky_relu_rule(const Tensor& g, const Tensor& x, Scalar slope, Scalar) {
  return recorded() ? where(x > 0, g, g * slope) : fused(kLeakyReluGrad, g, x, slope);
}
// [/snippet leaky_relu_rule]
Tensor sigmoid_rule(const Tensor& g, const Tensor& y, Scalar, Scalar) {
  return recorded() ? g * ((1 - y) * y) : fused(kSigmoidGrad, g, y);
}
Tensor tanh_rule(const Tensor& g, const Tensor& y, Scalar, Scalar) {
  return recorded() ? g * (1 - square(y)) : fused(kTanhGrad, g, y);
}
Tensor silu_rule(const Tensor& g, const Tensor& x, Scalar, Scalar) {
  if (!recorded()) return fused(kSiluGrad, g, x);
  const Tensor s = sigmoid(x);
  return g * (s * (1 + x * (1 - s)));
}
Tensor gelu_rule(const Tensor& g, const Tensor& x, Scalar, Scalar) {
  if (!recorded()) return fused(kGeluGrad, g, x);
  const Tensor cdf = (erf(x * kSqrtHalf) + 1) * 0.5;
  return g * (cdf + x * exp(square(x) * -0.5) * kInvSqrtTwoPi);
}
Tensor gelu_tanh_rule(const Tensor& g, const Tensor& x, Scalar, Scalar) {
  if (!recorded()) return fused(kGeluTanhGrad, g, x);
  const Tensor t = tanh((x + square(x) * x * kGeluCubic) * kSqrtTwoOverPi);
  const Tensor slope = (square(x) * (3 * kGeluCubic) + 1) * kSqrtTwoOverPi;
  return g * ((t + 1) * 0.5 + x * (1 - square(t)) * slope * 0.5);
}
Tensor softplus_rule(const Tensor& g, const Tensor& x, Scalar beta, Scalar) { return g * sigmoid(x * beta); }

}  // namespace

Tensor relu(const Tensor& x) { return unary(kRelu, x, "ReluBackward", Keep::y, relu_rule); }
// [snippet leaky_relu]
Tensor leaky_relu(const Tensor& x, double negative_slope) {
  return floating_unary(kLeakyRelu, x, "LeakyReluBackward", Keep::x, leaky_relu_rule, negative_slope);
}
// [/snippet leaky_relu]
Tensor sigmoid(const Tensor& x) {
  return floating_unary(kSigmoid, x, "SigmoidBackward", Keep::y, sigmoid_rule);
}
Tensor tanh(const Tensor& x) { return floating_unary(kTanh, x, "TanhBackward", Keep::y, tanh_rule); }
Tensor silu(const Tensor& x) { return floating_unary(kSilu, x, "SiluBackward", Keep::x, silu_rule); }

Tensor gelu(const Tensor& x, std::string_view approximate) {
  GRADUS_CHECK(approximate == "none" || approximate == "tanh", "E-ARG",
               "gelu: approximate argument must be either none or tanh, got '", approximate, "'");
  if (approximate == "tanh") return floating_unary(kGeluTanh, x, "GeluBackward", Keep::x, gelu_tanh_rule);
  return floating_unary(kGelu, x, "GeluBackward", Keep::x, gelu_rule);
}

Tensor softplus(const Tensor& x, double beta, double threshold) {
  if (const auto cast = ops::autocast(ops::kFloat32OnGpu, x)) return softplus(cast(x), beta, threshold);
  return floating_unary(kSoftplus, x, "SoftplusBackward", Keep::x, softplus_rule, beta, threshold);
}

Tensor& Tensor::relu_() {
  if (wants_grad(*this)) return ops::assign(*this, gradus::relu(*this), "relu");
  check_inplace(*this, "relu");
  launch(kRelu, dtype(), ops::stream_of(*this), UnaryArgs{arg(), arg(), 0, 0});
  bump_version();
  return *this;
}

Tensor Tensor::tanh() const { return gradus::tanh(*this); }
Tensor Tensor::sigmoid() const { return gradus::sigmoid(*this); }
Tensor Tensor::relu() const { return gradus::relu(*this); }

}  // namespace gradus
