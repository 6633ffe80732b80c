#include <gradus/ops/arithmetic.h>
#include <gradus/ops/autocast.h>
#include <gradus/ops/common.h>
#include <gradus/ops/extremum.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/norm.h>
#include <gradus/ops/reduction.h>
#include <gradus/ops/rounding.h>

#include <cmath>
#include <limits>

#include "kernels/reduce.cuh"

namespace gradus {
namespace {

using ops::reduced_shapes;
using ops::ReducedShapes;
using ops::ReductionNode;

constexpr auto kNorm =
    KernelTable<ReduceArgs>("norm").everywhere<ReduceKernel<reduction::Euclidean>, kFloatingTypes>();

void check_floating(const Tensor& x, const char* op) {
  ops::check_defined(op, x);
  GRADUS_CHECK(x.is_floating_point(), "E-DTYPE", op, ": expected a floating point tensor, got ",
               to_string(x.dtype()), hint("convert the input with .to(kFloat32)"));
}

// The half types are too short for intermediate results.
Tensor widened(const Tensor& x) { return element_size(x.dtype()) < 4 ? x.to(kFloat32) : x; }

// The distance of each element from the mean it belongs to.
Tensor centred(const Tensor& x, const Shape& kept) {
  const Dims dims = ops::reduced_dims(kept);
  return dims.empty() ? x - x : x - mean(x, dims, true);
}

struct VarBackward : ReductionNode {
  VarBackward(const Shape& kept_sizes, const Shape& x_sizes, double by)
      : ReductionNode(kept_sizes, x_sizes), divisor(by) {}
  const char* name() const override { return "VarBackward"; }
  TensorList backward(const TensorList& g) override {
    const Tensor x = saved(0);
    return {(expand(widened(g[0]) * (2 / divisor)) * centred(widened(x), kept)).to(x.dtype())};
  }
  double divisor;
};

struct StdBackward : Node {
  const char* name() const override { return "StdBackward"; }
  TensorList backward(const TensorList& g) override {
    const Tensor y = saved(0);
    return {(g[0] / (y * 2)).masked_fill(y == 0, 0)};
  }
};

// The variance, in at least float32.
Tensor wide_var(const Tensor& x, const Dims& dims, bool keepdim, double correction) {
  const ReducedShapes shapes = reduced_shapes(x, dims, keepdim, "var");
  const int64_t outputs = shapes.kept.numel();
  const double count = outputs == 0 ? 0 : static_cast<double>(x.numel() / outputs);
  const double divisor = std::max(0.0, count - correction);
  Tensor y;
  {
    NoGradGuard no_grad;
    const Tensor distance = centred(widened(x), shapes.kept);
    y = sum(distance * distance, dims, keepdim) / divisor;
  }
  if (wants_grad(x)) record<VarBackward>(y, x, shapes.kept, x.sizes(), divisor).save(x);
  return y;
}

// Gradient of norm: g |x|^(p-1) sign(x) / norm^(p-1), and 0 where the norm is 0.
struct NormBackward : ReductionNode {
  NormBackward(const Shape& kept_sizes, const Shape& x_sizes, double exponent)
      : ReductionNode(kept_sizes, x_sizes), p(exponent) {}
  const char* name() const override { return "NormBackward"; }
  TensorList backward(const TensorList& g) override {
    const Tensor x = saved(0), y = saved(1);
    if (p == 0) return {zeros_like(x)};
    if (p == 1) return {expand(g[0]) * sign(x)};
    const Tensor zero = y == 0;
    if (p == 2) return {x * expand((g[0] / y).masked_fill(zero, 0))};
    if (std::isinf(p)) return {expand(g[0]) * sign(x) * share((x.abs() == expand(y)).to(x.dtype()))};
    Tensor power = sign(x) * x.abs().pow(p - 1);
    if (p < 1) power = power.masked_fill(x == 0, 0);
    return {power * expand((g[0] / y.pow(p - 1)).masked_fill(zero, 0))};
  }
  double p;
};

Tensor norm_value(const Tensor& x, double p, const Dims& dims, bool keepdim) {
  if (p == 0)
    return count_nonzero(x, dims).to(x.dtype()).reshape(reduced_shapes(x, dims, keepdim, "norm").out);
  if (p == 1) return sum(x.abs(), dims, keepdim);
  if (p == 2) return ops::reduce(kNorm, x, reduced_shapes(x, dims, keepdim, "norm"), x.dtype());
  if (std::isinf(p)) return p > 0 ? amax(x.abs(), dims, keepdim) : amin(x.abs(), dims, keepdim);
  return sum(widened(x).abs().pow(p), dims, keepdim).pow(1 / p).to(x.dtype());
}

struct LogSumExpBackward : ReductionNode {
  using ReductionNode::ReductionNode;
  const char* name() const override { return "LogSumExpBackward"; }
  TensorList backward(const TensorList& g) override {
    return {expand(g[0]) * (saved(0) - expand(saved(1))).exp()};
  }
};

}  // namespace

Tensor var(const Tensor& x, const Dims& dims, bool keepdim, double correction) {
  check_floating(x, "var");
  return wide_var(x, dims, keepdim, correction).to(x.dtype());
}

Tensor std(const Tensor& x, const Dims& dims, bool keepdim, double correction) {
  check_floating(x, "std");
  const Tensor variance = wide_var(x, dims, keepdim, correction);
  Tensor y = [&] {
    NoGradGuard no_grad;
    return variance.sqrt();
  }();
  if (wants_grad(variance)) record<StdBackward>(y, variance).save(y);
  return y.to(x.dtype());
}

Tensor norm(const Tensor& x, double p, const Dims& dims, bool keepdim) {
  if (const auto cast = ops::autocast(ops::kFloat32OnGpu, x)) return norm(cast(x), p, dims, keepdim);
  check_floating(x, "norm");
  const ReducedShapes shapes = reduced_shapes(x, dims, keepdim, "norm");
  if (std::isinf(p)) ops::check_not_empty(x, shapes, "norm");
  Tensor y = [&] {
    NoGradGuard no_grad;
    return norm_value(x, p, dims, keepdim);
  }();
  if (wants_grad(x)) record<NormBackward>(y, x, shapes.kept, x.sizes(), p).save(x).save(y);
  return y;
}

Tensor logsumexp(const Tensor& x, const Dims& dims, bool keepdim) {
  if (const auto cast = ops::autocast(ops::kFloat32OnGpu, x)) return logsumexp(cast(x), dims, keepdim);
  check_floating(x, "logsumexp");
  const ReducedShapes shapes = reduced_shapes(x, dims, keepdim, "logsumexp");
  Tensor y;
  {
    NoGradGuard no_grad;
    const Tensor wide = widened(x);
    if (x.numel() == 0) {
      y = sum(wide, dims, keepdim).log().to(x.dtype());
    } else {
      const Tensor largest = amax(wide, dims, true);
      const Tensor shift = largest.masked_fill(largest.abs() == std::numeric_limits<double>::infinity(), 0);
      y = (sum((wide - shift).exp(), dims, true).log() + shift).to(x.dtype()).reshape(shapes.out);
    }
  }
  if (wants_grad(x)) record<LogSumExpBackward>(y, x, shapes.kept, x.sizes()).save(x).save(y);
  return y;
}

Tensor Tensor::norm(double p) const { return gradus::norm(*this, p); }

}  // namespace gradus
