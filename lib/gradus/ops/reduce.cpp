#include "kernels/reduce.cuh"

#include <gradus/ops/arithmetic.h>
#include <gradus/ops/autocast.h>
#include <gradus/ops/common.h>
#include <gradus/ops/reduction.h>

namespace gradus {
namespace {

using ops::reduced_shapes;
using ops::ReducedShapes;
using ops::ReductionNode;

constexpr auto kSum =
    KernelTable<ReduceArgs>("sum").everywhere<WideReduceKernel<reduction::Add>, kAllTypes>();
constexpr auto kMean =
    KernelTable<ReduceArgs>("mean").everywhere<ReduceKernel<reduction::Mean>, kFloatingTypes>();

struct SumBackward : ReductionNode {
  using ReductionNode::ReductionNode;
  const char* name() const override { return "SumBackward"; }
  TensorList backward(const TensorList& g) override { return {expand(g[0])}; }
};

struct MeanBackward : ReductionNode {
  using ReductionNode::ReductionNode;
  const char* name() const override { return "MeanBackward"; }
  TensorList backward(const TensorList& g) override { return {expand(div(g[0], count()))}; }
};

DType sum_type(DType d) { return is_floating_point(d) ? d : kInt64; }

}  // namespace

Tensor sum(const Tensor& x, const Dims& dims, bool keepdim) {
  if (const auto cast = ops::autocast(ops::kFloat32OnGpu, x)) return sum(cast(x), dims, keepdim);
  const ReducedShapes shapes = reduced_shapes(x, dims, keepdim, "sum");
  Tensor y = ops::reduce(kSum, x, shapes, sum_type(x.dtype()));
  if (wants_grad(x)) record<SumBackward>(y, x, shapes.kept, x.sizes());
  return y;
}

Tensor mean(const Tensor& x, const Dims& dims, bool keepdim) {
  ops::check_defined("mean", x);
  GRADUS_CHECK(x.is_floating_point(), "E-DTYPE",
               "mean: could not infer output dtype. Input dtype must be a floating point dtype. Got: ",
               to_string(x.dtype()), hint("convert the input with .to(kFloat32)"));
  const ReducedShapes shapes = reduced_shapes(x, dims, keepdim, "mean");
  Tensor y = ops::reduce(kMean, x, shapes, x.dtype());
  if (wants_grad(x)) record<MeanBackward>(y, x, shapes.kept, x.sizes());
  return y;
}

Tensor sum_to_size(const Tensor& x, const Shape& sizes) {
  ops::check_defined("sum_to_size", x);
  if (x.sizes() == sizes) return x;
  const int added = x.dim() - sizes.size();
  bool fits = added >= 0;
  ReducedShapes shapes{sizes, {}};
  for (int d = 0; fits && d < x.dim(); ++d) {
    shapes.kept.push_back(d < added ? 1 : sizes[d - added]);
    fits = shapes.kept[d] == 1 || shapes.kept[d] == x.sizes()[d];
  }
  GRADUS_CHECK(fits, "E-SHAPE", "sum_to_size: size ", sizes, " is not expandable to size ", x.sizes());
  Tensor y = ops::reduce(kSum, x, shapes, sum_type(x.dtype()));
  if (wants_grad(x)) record<SumBackward>(y, x, shapes.kept, x.sizes());
  return y;
}

Tensor count_nonzero(const Tensor& x, const Dims& dims) {
  ops::check_defined("count_nonzero", x);
  return sum(x.to(kBool), dims);
}

Tensor Tensor::sum() const { return gradus::sum(*this); }
Tensor Tensor::sum(const Shape& dims, bool keepdim) const { return gradus::sum(*this, dims, keepdim); }
Tensor Tensor::mean() const { return gradus::mean(*this); }
Tensor Tensor::mean(const Shape& dims, bool keepdim) const { return gradus::mean(*this, dims, keepdim); }

}  // namespace gradus
