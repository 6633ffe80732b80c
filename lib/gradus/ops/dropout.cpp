#include "kernels/dropout.cuh"

#include <gradus/base/random_scope.h>
#include <gradus/ops/cat.h>
#include <gradus/ops/common.h>
#include <gradus/ops/dropout.h>
#include <gradus/ops/factories.h>

namespace gradus {
namespace {

constexpr auto kDropout =
    KernelTable<DropoutArgs>("dropout").everywhere<kernels::DropoutKernel, kFloatingTypes>();

// The numbers of logical elements from `first` on, a multiple of 4.
struct Numbers {
  PhiloxStream stream;
  uint64_t first = 0;
};

Tensor drop(const Tensor& x, double p, const Numbers& numbers);

// Linear: the gradient drops the same elements.
struct DropoutBackward : Node {
  DropoutBackward(double probability, const Numbers& drawn) : p(probability), numbers(drawn) {}
  const char* name() const override { return "DropoutBackward"; }
  TensorList backward(const TensorList& g) override { return {drop(g[0], p, numbers)}; }
  double p;
  Numbers numbers;
};

Tensor drop(const Tensor& x, double p, const Numbers& numbers) {
  Tensor y = empty_like(x);
  launch(kDropout, x.dtype(), ops::stream_of(y),
         DropoutArgs{x.arg(), y.arg(), numbers.stream, p, numbers.first});
  if (wants_grad(x)) record<DropoutBackward>(y, x, p, numbers);
  return y;
}

// How many elements of the whole batch come before x's, of which the thread has a part.
uint64_t elements_before(const Tensor& x) {
  const BatchPart& part = batch_part();
  if (part.rows == 0 || x.numel() % part.rows != 0) return 0;
  return static_cast<uint64_t>(part.first * (x.numel() / part.rows));
}

// Numbers come in fours: a part that begins within one is dropped with what is before it in the four.
Tensor drop_from(const Tensor& x, double p, const PhiloxStream& stream, uint64_t first) {
  const auto before = static_cast<int64_t>(first % 4);
  if (before == 0) return drop(x, p, {stream, first});
  const Tensor padded = cat({zeros({before}, x.dtype(), x.device()), x.reshape({x.numel()})});
  return drop(padded, p, {stream, first - first % 4}).narrow(0, before, x.numel()).reshape(x.sizes());
}

}  // namespace

Tensor dropout(const Tensor& x, double p, bool training) {
  GRADUS_CHECK(p >= 0 && p <= 1, "E-ARG", "dropout: dropout probability has to be between 0 and 1, but got ",
               p);
  ops::check_defined("dropout", x);
  GRADUS_CHECK(x.is_floating_point(), "E-DTYPE", "dropout: expected a floating dtype, got ",
               to_string(x.dtype()), hint("convert it with .to(kFloat32)"));
  if (!training || p == 0) return x;
  return drop_from(x, p, default_generator().reserve(), elements_before(x));
}

}  // namespace gradus
