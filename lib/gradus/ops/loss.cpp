#include <gradus/ops/arithmetic.h>
#include <gradus/ops/autocast.h>
#include <gradus/ops/common.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/loss.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/rounding.h>

#include "kernels/pair_loss.cuh"

namespace gradus {
namespace {

using Table = KernelTable<PairLossArgs>;
using BackwardTable = KernelTable<PairLossBackwardArgs>;

// One loss: its kernels, and the derivatives by input and target as operations, which create_graph asks for.
struct PairLoss {
  Table value;
  BackwardTable slope;
  Tensor (*input_slope)(const Tensor& x, const Tensor& t, double p);
  Tensor (*target_slope)(const Tensor& x, const Tensor& t, double p);  // null: minus input_slope
};

template <class F>
constexpr PairLoss pair_loss(const char* name, const char* backward_name,
                             decltype(PairLoss::input_slope) input_slope,
                             decltype(PairLoss::target_slope) target_slope = nullptr) {
  return {Table(name).everywhere<PairLossKernel<F>, kFloatingTypes>(),
          BackwardTable(backward_name).everywhere<PairLossBackwardKernel<F>, kFloatingTypes>(), input_slope,
          target_slope};
}

constexpr PairLoss kMse = pair_loss<losses::Squared>(
    "mse_loss", "mse_loss_backward", [](const Tensor& x, const Tensor& t, double) { return (x - t) * 2; });
constexpr PairLoss kL1 = pair_loss<losses::Absolute>(
    "l1_loss", "l1_loss_backward", [](const Tensor& x, const Tensor& t, double) { return sign(x - t); });
constexpr PairLoss kHuber = pair_loss<losses::Huber>(
    "huber_loss", "huber_loss_backward",
    [](const Tensor& x, const Tensor& t, double delta) { return (x - t).clamp(-delta, delta); });
constexpr PairLoss kSmoothL1 = pair_loss<losses::SmoothL1>(
    "smooth_l1_loss", "smooth_l1_loss_backward",
    [](const Tensor& x, const Tensor& t, double beta) { return ((x - t) / beta).clamp(-1, 1); });
constexpr PairLoss kBinaryLogits = pair_loss<losses::BinaryLogits>(
    "binary_cross_entropy_with_logits", "binary_cross_entropy_with_logits_backward",
    [](const Tensor& x, const Tensor& t, double) { return x.sigmoid() - t; },
    [](const Tensor& x, const Tensor&, double) { return -x; });
constexpr PairLoss kBinary = pair_loss<losses::Binary>(
    "binary_cross_entropy", "binary_cross_entropy_backward",
    [](const Tensor& x, const Tensor& t, double) { return (x - t) / ((1 - x) * x).clamp(1e-12); },
    [](const Tensor& x, const Tensor&, double) {
      return (1 - x).log().clamp(Scalar(-100)) - x.log().clamp(Scalar(-100));
    });

struct PairLossBackward : Node {
  PairLossBackward(const PairLoss& kind, double number, int64_t by, bool for_each)
      : loss(kind), p(number), divisor(by), each(for_each) {}
  const char* name() const override { return loss.slope.name(); }
  TensorList backward(const TensorList& g) override {
    const Tensor x = saved(0), t = saved(1);
    if (GradMode::is_enabled() || (wants(1) && loss.target_slope)) return composed(g[0], x, t);
    const Tensor dx = fused(g[0], x, t);
    return {dx, wants(1) ? -dx : Tensor()};
  }

 private:
  Tensor fused(const Tensor& grad, const Tensor& x, const Tensor& t) const {
    Tensor dx = empty_like(x);
    Tensor dy = grad;
    if (each && dy.strides() != x.strides()) dy = empty_like(x), dy.copy_(grad);
    launch(loss.slope, x.dtype(), ops::stream_of(x),
           PairLossBackwardArgs{x.arg(), t.arg(), dy.arg(), dx.arg(), p, divisor, each});
    return dx;
  }
  TensorList composed(const Tensor& grad, const Tensor& x, const Tensor& t) const {
    const Tensor g = each ? grad : grad / static_cast<double>(divisor);
    const Tensor dx = wants(0) || !loss.target_slope ? g * loss.input_slope(x, t, p) : Tensor();
    if (!wants(1)) return {dx, Tensor()};
    return {dx, loss.target_slope ? g * loss.target_slope(x, t, p) : -dx};
  }
  const PairLoss& loss;
  double p;
  int64_t divisor;
  bool each;
};

Tensor run(const PairLoss& loss, const Tensor& input, const Tensor& target, double p, Reduction reduction) {
  const bool each = reduction == Reduction::none;
  const bool flat = input.is_dense() && target.strides() == input.strides();
  const Tensor x = flat ? input : input.contiguous(), t = flat ? target : target.contiguous();
  Tensor y = each ? empty_like(x) : empty({}, x.dtype(), x.device());
  const int64_t divisor = reduction == Reduction::mean ? x.numel() : 1;
  launch(loss.value, x.dtype(), ops::stream_of(x), PairLossArgs{x.arg(), t.arg(), y.arg(), p, divisor, each});
  if (wants_grad(x, t)) record<PairLossBackward>(y, {x, t}, loss, p, divisor, each).save(x).save(t);
  return y;
}

struct Pair {
  Tensor input, target;
};

// Both in one dtype and shape. A target of another shape is nearly always a mistake: [N] against [N, 1] would
// compare everything with everything.
Pair matched(const char* op, const Tensor& input, const Tensor& target) {
  ops::check_same_device(op, {{"input", input}, {"target", target}});
  const DType dtype = ops::result_type(op, input, target);
  Pair pair{input.dtype() == dtype ? input : input.to(dtype),
            target.dtype() == dtype ? target : target.to(dtype)};
  if (input.sizes() == target.sizes()) return pair;
  warn(op, ": Using a target size (", target.sizes(), ") that is different to the input size (",
       input.sizes(),
       "). This will likely lead to incorrect results due to broadcasting. Please ensure they have the same "
       "size.");
  const Shape sizes = broadcast_shapes(input.sizes(), target.sizes(), op);
  return {pair.input.expand(sizes), pair.target.expand(sizes)};
}

Tensor matched_loss(const PairLoss& loss, const Tensor& input, const Tensor& target, double p,
                    Reduction reduction) {
  const Pair pair = matched(loss.value.name(), input, target);
  return run(loss, pair.input, pair.target, p, reduction);
}

void check_equal_shapes(const char* op, const Tensor& input, const Tensor& target) {
  ops::check_same_device(op, {{"input", input}, {"target", target}});
  GRADUS_CHECK(input.sizes() == target.sizes(), "E-SHAPE", op, ": Target size (", target.sizes(),
               ") must be the same as input size (", input.sizes(), ")",
               hint("use unsqueeze() or reshape() on the target"));
}

Tensor reduced(const Tensor& loss, Reduction reduction) {
  if (reduction == Reduction::none) return loss;
  return reduction == Reduction::mean ? mean(loss) : sum(loss);
}

}  // namespace

Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  if (const auto cast = ops::autocast(ops::kFloat32Precision, input))
    return mse_loss(cast(input), cast(target), reduction);
  return matched_loss(kMse, input, target, 0, reduction);
}
Tensor l1_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  if (const auto cast = ops::autocast(ops::kFloat32Precision, input))
    return l1_loss(cast(input), cast(target), reduction);
  return matched_loss(kL1, input, target, 0, reduction);
}
Tensor huber_loss(const Tensor& input, const Tensor& target, const HuberLossOptions& options) {
  if (const auto cast = ops::autocast(ops::kFloat32Precision, input))
    return huber_loss(cast(input), cast(target), options);
  GRADUS_CHECK(options.delta > 0, "E-ARG", "huber_loss: expected delta > 0, got ", options.delta);
  return matched_loss(kHuber, input, target, options.delta, options.reduction);
}
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, const SmoothL1LossOptions& options) {
  if (const auto cast = ops::autocast(ops::kFloat32Precision, input))
    return smooth_l1_loss(cast(input), cast(target), options);
  GRADUS_CHECK(options.beta >= 0, "E-ARG", "smooth_l1_loss: expected beta >= 0, got ", options.beta);
  if (options.beta == 0) return l1_loss(input, target, options.reduction);
  return matched_loss(kSmoothL1, input, target, options.beta, options.reduction);
}

Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        const BinaryCrossEntropyOptions& options) {
  if (const auto cast = ops::autocast(ops::kFloat32Precision, input))
    return binary_cross_entropy_with_logits(cast(input), cast(target), options);
  const char* op = kBinaryLogits.value.name();
  check_equal_shapes(op, input, target);
  const auto [x, t] = matched(op, input, target);
  if (!options.weight.defined() && !options.pos_weight.defined())
    return run(kBinaryLogits, x, t, 0, options.reduction);
  Tensor loss;
  if (options.pos_weight.defined()) {
    // With a target of 1 the loss is softplus(-x), -log(sigmoid(x)).
    const Tensor softplus = run(kBinaryLogits, x, ones_like(x), 0, Reduction::none);
    loss = (1 - t) * x + ((options.pos_weight - 1) * t + 1) * softplus;
  } else {
    loss = run(kBinaryLogits, x, t, 0, Reduction::none);
  }
  return reduced(options.weight.defined() ? loss * options.weight : loss, options.reduction);
}

Tensor binary_cross_entropy(const Tensor& input, const Tensor& target,
                            const BinaryCrossEntropyOptions& options) {
  if (const auto cast = ops::autocast(ops::kFloat32Precision, input)) {
    GRADUS_CHECK(input.is_cpu(), "E-AUTOCAST",
                 "binary_cross_entropy: it and nn::BCELoss are unsafe to autocast on ", input.device(),
                 hint("leave out the sigmoid and use binary_cross_entropy_with_logits(), which is safe"));
    return binary_cross_entropy(cast(input), cast(target), options);
  }
  const char* op = kBinary.value.name();
  check_equal_shapes(op, input, target);
  GRADUS_CHECK(!options.pos_weight.defined(), "E-ARG", op, ": pos_weight is for logits",
               hint("use binary_cross_entropy_with_logits()"));
  const auto [x, t] = matched(op, input, target);
  if (!options.weight.defined()) return run(kBinary, x, t, 0, options.reduction);
  return reduced(run(kBinary, x, t, 0, Reduction::none) * options.weight, options.reduction);
}

}  // namespace gradus
