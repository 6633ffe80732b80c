#include <gradus/ops/arithmetic.h>
#include <gradus/ops/autocast.h>
#include <gradus/ops/cat.h>
#include <gradus/ops/common.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/reduction.h>

#include <optional>
#include <vector>

#include "kernels/reduce.cuh"

namespace gradus {
namespace {

using ops::ReducedShapes;
using ops::ReductionNode;

constexpr auto kProd =
    KernelTable<ReduceArgs>("prod").everywhere<WideReduceKernel<reduction::Multiply>, kAllTypes>();

// For each element along `dim` the product of all others. Not y / x, which zeros would spoil: pairs are
// multiplied up a tree, and on the way down each half is given the other half's product.
Tensor product_of_others(const Tensor& x, int64_t dim) {
  std::vector<Tensor> levels{x};
  while (levels.back().size(dim) > 1) {
    const Tensor t = levels.back();
    const int64_t n = t.size(dim), half = n / 2;
    const Tensor pairs = t.narrow(dim, 0, half) * t.narrow(dim, half, half);
    levels.push_back(n % 2 ? cat({pairs, t.narrow(dim, n - 1, 1)}, dim) : pairs);
  }
  Tensor others = ones_like(levels.back());
  for (size_t l = levels.size() - 1; l-- > 0;) {
    const Tensor& t = levels[l];
    const int64_t n = t.size(dim), half = n / 2;
    const Tensor above = others.narrow(dim, 0, half);
    const Tensor low = above * t.narrow(dim, half, half), high = above * t.narrow(dim, 0, half);
    others = n % 2 ? cat({low, high, others.narrow(dim, half, 1)}, dim) : cat({low, high}, dim);
  }
  return others;
}

struct ProdBackward : ReductionNode {
  ProdBackward(const Shape& kept_sizes, const Shape& x_sizes, std::optional<int64_t> reduced)
      : ReductionNode(kept_sizes, x_sizes), dim(reduced) {}
  const char* name() const override { return "ProdBackward"; }
  TensorList backward(const TensorList& g) override {
    const Tensor x = saved(0);
    if (x.numel() == 0) return {zeros_like(x)};
    const Tensor others = dim ? product_of_others(x, *dim) : product_of_others(x.reshape({-1}), 0);
    return {expand(g[0]) * others.reshape(sizes)};
  }
  std::optional<int64_t> dim;
};

Tensor prod(const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  if (const auto cast = ops::autocast(ops::kFloat32Precision, x)) return prod(cast(x), dim, keepdim);
  const ReducedShapes shapes = ops::reduced_shapes(x, dim ? Dims(*dim) : Dims(), keepdim, "prod");
  Tensor y = ops::reduce(kProd, x, shapes, is_floating_point(x.dtype()) ? x.dtype() : kInt64);
  if (wants_grad(x)) record<ProdBackward>(y, x, shapes.kept, x.sizes(), dim).save(x);
  return y;
}

}  // namespace

Tensor prod(const Tensor& x) { return prod(x, std::nullopt, false); }
Tensor prod(const Tensor& x, int64_t dim, bool keepdim) { return prod(x, std::optional(dim), keepdim); }

}  // namespace gradus
