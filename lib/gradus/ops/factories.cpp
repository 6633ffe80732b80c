#include <gradus/ops/common.h>
#include <gradus/ops/factories.h>

#include <cmath>

#include "kernels/sequence.cuh"

namespace gradus {

using detail::finish;
using detail::make;

namespace {

constexpr auto kArange = KernelTable<ArangeArgs>("arange").everywhere<kernels::Arange, kNumericTypes>();
constexpr auto kLinspace =
    KernelTable<LinspaceArgs>("linspace").everywhere<kernels::Linspace, kFloatingTypes>();

DType dtype_of_number(Scalar value) { return value.is_floating_point() ? DType::float32 : value.kind(); }

int64_t arange_length(Scalar start, Scalar end, Scalar step) {
  const double a = start.to<double>(), b = end.to<double>(), s = step.to<double>();
  GRADUS_CHECK(s > 0 || s < 0, "E-ARG", "arange: step must be nonzero, got ", s);
  GRADUS_CHECK((s > 0 && b >= a) || (s < 0 && b <= a), "E-ARG",
               "arange: upper bound and lower bound inconsistent with step sign: start ", a, ", end ", b,
               ", step ", s);
  if (!start.is_floating_point() && !end.is_floating_point() && !step.is_floating_point()) {
    const int64_t distance = end.to<int64_t>() - start.to<int64_t>(), by = step.to<int64_t>();
    return distance / by + (distance % by != 0);
  }
  const double length = std::ceil((b - a) / s);
  GRADUS_CHECK(length < 0x1p62, "E-ARG", "arange: from ", a, " to ", b, " by ", s, " is too many numbers");
  return static_cast<int64_t>(length);
}

}  // namespace

Tensor detail::make(const Shape& sizes, DType dtype, const TensorOptions& options) {
  return empty(sizes, {.dtype = options.dtype.value_or(dtype),
                       .device = options.device,
                       .memory_format = options.memory_format,
                       .pin_memory = options.pin_memory});
}
Tensor detail::finish(Tensor t, const TensorOptions& options) {
  if (options.requires_grad) t.requires_grad_();
  return t;
}

Tensor full(const Shape& sizes, Scalar value, const TensorOptions& options) {
  Tensor t = make(sizes, dtype_of_number(value), options);
  t.fill_(value);
  return finish(t, options);
}
Tensor zeros(const Shape& sizes, const TensorOptions& options) { return full(sizes, 0.0, options); }
Tensor ones(const Shape& sizes, const TensorOptions& options) { return full(sizes, 1.0, options); }

Tensor full_like(const Tensor& like, Scalar value) {
  Tensor t = empty_like(like);
  t.fill_(value);
  return t;
}
Tensor zeros_like(const Tensor& like) { return full_like(like, 0); }
Tensor ones_like(const Tensor& like) { return full_like(like, 1); }

Tensor arange(Scalar start, Scalar end, Scalar step, const TensorOptions& options) {
  const bool whole = !start.is_floating_point() && !end.is_floating_point() && !step.is_floating_point();
  Tensor t = make({arange_length(start, end, step)}, whole ? DType::int64 : DType::float32, options);
  launch(kArange, t.dtype(), ops::stream_of(t), ArangeArgs{t.arg(), start, step});
  return finish(t, options);
}
Tensor arange(Scalar end, const TensorOptions& options) { return arange(0, end, 1, options); }

Tensor linspace(double start, double end, int64_t steps, const TensorOptions& options) {
  GRADUS_CHECK(steps >= 0, "E-ARG", "linspace: number of steps must be non-negative, got ", steps);
  Tensor t = make({steps}, DType::float32, options);
  launch(kLinspace, t.dtype(), ops::stream_of(t), LinspaceArgs{t.arg(), start, end, steps});
  return finish(t, options);
}

Tensor eye(int64_t n, const TensorOptions& options) {
  Tensor t = make({n, n}, DType::float32, options);
  t.zero_();
  detail::make_view(t, {n}, {n + 1}, 0).fill_(1);
  return finish(t, options);
}

Tensor scalar_tensor(Scalar value, const TensorOptions& options) { return full({}, value, options); }

void detail::check_literal(int64_t got, const Shape& sizes) {
  GRADUS_CHECK(got == sizes.numel(), "E-SHAPE", "tensor: shape ", sizes, " needs ", sizes.numel(),
               " values, got ", got);
}
void detail::check_row(size_t got, size_t expected) {
  GRADUS_CHECK(got == expected, "E-SHAPE", "tensor: expected sequence of length ", expected,
               " at dim 1 (got ", got, ")");
}
Tensor detail::finish_literal(const Tensor& values, DType dtype, const TensorOptions& options) {
  return finish(values.to(options.dtype.value_or(dtype)).to(options.device), options);
}

Tensor Tensor::new_empty(const Shape& sizes) const { return empty(sizes, dtype(), device()); }
Tensor Tensor::new_full(const Shape& sizes, Scalar value) const {
  Tensor t = new_empty(sizes);
  t.fill_(value);
  return t;
}
Tensor Tensor::new_zeros(const Shape& sizes) const { return new_full(sizes, 0); }
Tensor Tensor::new_ones(const Shape& sizes) const { return new_full(sizes, 1); }

}  // namespace gradus
