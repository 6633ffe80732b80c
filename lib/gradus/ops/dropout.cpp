#include "kernels/dropout.cuh"

#include <gradus/ops/common.h>
#include <gradus/ops/dropout.h>

namespace gradus {
namespace {

constexpr auto kDropout =
    KernelTable<DropoutArgs>("dropout").everywhere<kernels::DropoutKernel, kFloatingTypes>();

Tensor drop(const Tensor& x, double p, const PhiloxStream& stream);

// Linear: the gradient drops the same elements.
struct DropoutBackward : Node {
  DropoutBackward(double probability, const PhiloxStream& numbers) : p(probability), stream(numbers) {}
  const char* name() const override { return "DropoutBackward"; }
  TensorList backward(const TensorList& g) override { return {drop(g[0], p, stream)}; }
  double p;
  PhiloxStream stream;
};

Tensor drop(const Tensor& x, double p, const PhiloxStream& stream) {
  Tensor y = empty_like(x);
  launch(kDropout, x.dtype(), ops::stream_of(y), DropoutArgs{x.arg(), y.arg(), stream, p});
  if (wants_grad(x)) record<DropoutBackward>(y, x, p, stream);
  return y;
}

}  // namespace

Tensor dropout(const Tensor& x, double p, bool training) {
  GRADUS_CHECK(p >= 0 && p <= 1, "E-ARG", "dropout: dropout probability has to be between 0 and 1, but got ",
               p);
  ops::check_defined("dropout", x);
  GRADUS_CHECK(x.is_floating_point(), "E-DTYPE", "dropout: expected a floating dtype, got ",
               to_string(x.dtype()), hint("convert it with .to(kFloat32)"));
  if (!training || p == 0) return x;
  return drop(x, p, default_generator().reserve());
}

}  // namespace gradus
