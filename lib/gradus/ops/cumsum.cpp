#include "kernels/cumsum.cuh"

#include <gradus/ops/autocast.h>
#include <gradus/ops/common.h>
#include <gradus/ops/cumsum.h>

namespace gradus {
namespace {

constexpr auto kCumSum = KernelTable<CumSumArgs>("cumsum").everywhere<CumSumKernel, kAllTypes>();

Tensor cumsum(const Tensor& x, int dim, bool reverse);

// An element is part of its own sum and all later ones: the gradient runs the other way.
struct CumSumBackward : Node {
  CumSumBackward(int along, bool reversed) : dim(along), reverse(reversed) {}
  const char* name() const override { return "CumSumBackward"; }
  TensorList backward(const TensorList& g) override { return {cumsum(g[0], dim, !reverse)}; }
  int dim;
  bool reverse;
};

Tensor cumsum(const Tensor& x, int dim, bool reverse) {
  Tensor y = empty_like(x, x.is_floating_point() ? x.dtype() : kInt64);
  CumSumArgs args{x.arg(), y.arg(), dim, reverse};
  if (x.dim() == 0) args.x.sizes = args.y.sizes = args.x.strides = args.y.strides = {1};
  launch(kCumSum, x.dtype(), ops::stream_of(y), args);
  if (wants_grad(x)) record<CumSumBackward>(y, x, dim, reverse);
  return y;
}

}  // namespace

Tensor cumsum(const Tensor& x, int64_t dim) {
  if (const auto cast = ops::autocast(ops::kFloat32OnGpu, x)) return cumsum(cast(x), dim);
  return cumsum(x, ops::wrap_dim(dim, x, "cumsum"), false);
}

}  // namespace gradus
