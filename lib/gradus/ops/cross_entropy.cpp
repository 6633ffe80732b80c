// cross_entropy and nll_loss, declared in loss.h.
#include "kernels/cross_entropy.cuh"

#include <gradus/ops/arithmetic.h>
#include <gradus/ops/autocast.h>
#include <gradus/ops/common.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/loss.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/softmax.h>

namespace gradus {
namespace {

constexpr auto kCrossEntropy =
    KernelTable<CrossEntropyArgs>("cross_entropy").everywhere<CrossEntropyKernel, kFloatingTypes>();
constexpr auto kCrossEntropyBackward = KernelTable<CrossEntropyBackwardArgs>("cross_entropy_backward")
                                           .everywhere<CrossEntropyBackwardKernel, kFloatingTypes>();

// What the two losses share.
struct Task {
  const char* op;
  int64_t ignore_index;
  Reduction reduction;
  double label_smoothing = 0;
  bool log_probabilities = false;

  bool each() const { return reduction == Reduction::none; }
  bool mean() const { return reduction == Reduction::mean; }
};

int class_dim(const Tensor& input) { return input.dim() == 1 ? 0 : 1; }
int64_t classes_of(const Tensor& input) { return input.sizes()[class_dim(input)]; }

// (N, C, d…) as (N, d…, C): a view.
Tensor classes_last(const Tensor& input) {
  if (input.dim() <= 2) return input;
  Shape order{0};
  for (int d = 2; d < input.dim(); ++d) order.push_back(d);
  order.push_back(1);
  return input.permute(order);
}
// And back.
Tensor classes_second(const Tensor& rows) {
  if (rows.dim() <= 2) return rows;
  Shape order{0, rows.dim() - 1};
  for (int d = 1; d + 1 < rows.dim(); ++d) order.push_back(d);
  return rows.permute(order);
}

// A contiguous [samples, classes] for the kernels, of a tensor with classes last.
TensorArg rows_arg(const Tensor& rows, int64_t classes) {
  TensorArg arg = rows.arg();
  arg.sizes = {classes == 0 ? 0 : rows.numel() / classes, classes};
  arg.strides = {classes, 1};
  return arg;
}

// saved: input, target, weight, stats, total_weight
struct CrossEntropyBackward : Node {
  explicit CrossEntropyBackward(const Task& what) : task(what) {}
  const char* name() const override {
    return task.log_probabilities ? "NllLossBackward" : "CrossEntropyBackward";
  }
  TensorList backward(const TensorList& g) override {
    return {GradMode::is_enabled() ? composed(g[0]) : fused(g[0])};
  }

 private:
  Tensor fused(const Tensor& grad) const {
    const Tensor x = classes_last(saved(0)).contiguous(), target = saved(1), weight = saved(2);
    const Tensor dy = grad.contiguous(), stats = saved(3), total_weight = saved(4);
    const int64_t classes = x.sizes()[x.dim() - 1];
    Tensor dx = empty(x.sizes(), x.dtype(), x.device());
    launch(
        kCrossEntropyBackward, x.dtype(), ops::stream_of(x),
        CrossEntropyBackwardArgs{rows_arg(x, classes), target.arg(), ops::optional_arg(weight), stats.arg(),
                                 total_weight.arg(), dy.arg(), rows_arg(dx, classes), task.ignore_index,
                                 task.label_smoothing, task.log_probabilities, task.each(), task.mean()});
    return classes_second(dx);
  }

  // The kernel's formula made of operations.
  Tensor composed(const Tensor& grad) const {
    const Tensor x = saved(0), target = saved(1), weight = saved(2);
    const int dim = class_dim(x);
    const int64_t classes = classes_of(x);
    const double e = task.label_smoothing;
    const DType dtype = x.dtype();
    Shape line = Shape::filled(x.dim(), 1);
    line[dim] = classes;
    const Tensor index =
        arange(Scalar(0), Scalar(classes), Scalar(1), {.dtype = kInt64, .device = x.device()});
    const Tensor t = target.unsqueeze(dim);
    const Tensor onehot = (index.reshape(line) == t).to(dtype),
                 valid = (t != Scalar(task.ignore_index)).to(dtype);
    const Tensor w =
        weight.defined() ? weight.reshape(line) : full(line, 1, {.dtype = dtype, .device = x.device()});
    Tensor g = task.each() ? grad.unsqueeze(dim) : grad;
    if (task.mean()) g = g / saved(4).to(dtype);
    // masked, for 0 / 0 is NaN where every target is ignored
    g = (valid * g).masked_fill(t == Scalar(task.ignore_index), 0);
    const Tensor hard = sum(onehot * w, dim, true) * (1 - e);
    if (task.log_probabilities) return g * hard * onehot * -1;
    const Tensor p = softmax(x, dim);
    return g * (hard * (p - onehot) + (p * sum(w, dim, true) - w) * (e / static_cast<double>(classes)));
  }

  Task task;
};

void check_shapes(const char* op, const Tensor& input, const Tensor& target, const Tensor& weight) {
  ops::check_same_device(op, {{"input", input}, {"target", target}, {"weight", weight, true}});
  GRADUS_CHECK(input.dim() >= 1, "E-SHAPE", op,
               ": expected an input of shape (C), (N, C) or (N, C, d1, ...), got ", input.sizes());
  GRADUS_CHECK(target.dtype() == kInt64, "E-DTYPE", op, ": expected class indices of int64, got ",
               to_string(target.dtype()), hint("convert the target with .to(kInt64)"));
  Shape expected = input.sizes();
  expected.erase(class_dim(input));
  GRADUS_CHECK(target.sizes() == expected, "E-SHAPE", op, ": Expected target size ", expected, ", got ",
               target.sizes(), " for an input of size ", input.sizes(),
               hint("a target of (N, 1) becomes (N) with squeeze(1)"));
  if (!weight.defined()) return;
  GRADUS_CHECK(weight.sizes() == Shape{classes_of(input)}, "E-SHAPE", op,
               ": weight tensor should be defined for all ", classes_of(input), " classes, but got shape ",
               weight.sizes());
}

Tensor run(const Task& task, const Tensor& input, const Tensor& target, const Tensor& class_weight) {
  check_shapes(task.op, input, target, class_weight);
  const bool converts = class_weight.defined() && class_weight.dtype() != input.dtype();
  const Tensor x = classes_last(input.detach()).contiguous(), t = target.contiguous();
  const Tensor weight = class_weight.defined()
                            ? (converts ? class_weight.to(input.dtype()) : class_weight).contiguous()
                            : Tensor();
  const DType wide = element_size(x.dtype()) < 4 ? kFloat32 : x.dtype();
  const Tensor losses = empty(t.sizes(), wide, x.device()), total_weight = empty({}, wide, x.device());
  const Tensor stats = empty({2, t.numel()}, wide, x.device());
  Tensor y = empty(task.each() ? t.sizes() : Shape(), x.dtype(), x.device());
  const int64_t classes = classes_of(input);
  launch(kCrossEntropy, x.dtype(), ops::stream_of(x),
         CrossEntropyArgs{rows_arg(x, classes), t.arg(), ops::optional_arg(weight), losses.arg(), stats.arg(),
                          total_weight.arg(), y.arg(), task.op, task.ignore_index, task.label_smoothing,
                          task.log_probabilities, task.each(), task.mean()});
  if (wants_grad(input)) {
    record<CrossEntropyBackward>(y, input, task)
        .save(input)
        .save(t)
        .save(weight)
        .save(stats)
        .save(total_weight);
  }
  return y;
}

// Targets that are probabilities: made of operations.
Tensor soft_cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyOptions& options) {
  const int dim = class_dim(input);
  const double e = options.label_smoothing, classes = static_cast<double>(classes_of(input));
  Shape line = Shape::filled(input.dim(), 1);
  line[dim] = classes_of(input);
  const Tensor smooth = e > 0 ? target * (1 - e) + e / classes : target;
  const Tensor weighted = options.weight.defined() ? smooth * options.weight.reshape(line) : smooth;
  const Tensor loss = sum(weighted * log_softmax(input, dim), dim) * -1;
  if (options.reduction == Reduction::none) return loss;
  return options.reduction == Reduction::mean ? mean(loss) : sum(loss);
}

}  // namespace

Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyOptions& options) {
  if (const auto cast = ops::autocast(ops::kFloat32Precision, input))
    return cross_entropy(cast(input), cast(target), options);
  const double e = options.label_smoothing;
  ops::check_same_device("cross_entropy", {{"input", input}, {"target", target}});
  GRADUS_CHECK(e >= 0 && e <= 1, "E-ARG",
               "cross_entropy: label_smoothing must be between 0.0 and 1.0. Got: ", e);
  if (target.is_floating_point() && target.sizes() == input.sizes())
    return soft_cross_entropy(input, target, options);
  return run({"cross_entropy", options.ignore_index, options.reduction, e}, input, target, options.weight);
}

Tensor nll_loss(const Tensor& input, const Tensor& target, const NllLossOptions& options) {
  if (const auto cast = ops::autocast(ops::kFloat32Precision, input))
    return nll_loss(cast(input), cast(target), options);
  return run({"nll_loss", options.ignore_index, options.reduction, 0, true}, input, target, options.weight);
}

}  // namespace gradus
