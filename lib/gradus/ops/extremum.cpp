#include "kernels/extremum.cuh"

#include <gradus/ops/arithmetic.h>
#include <gradus/ops/common.h>
#include <gradus/ops/extremum.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/reduction.h>

namespace gradus {
namespace {

using ops::reduced_shapes;
using ops::ReducedShapes;
using ops::ReductionNode;

constexpr auto kMax = KernelTable<ReduceArgs>("amax").everywhere<ReduceKernel<reduction::Max>, kAllTypes>();
constexpr auto kMin = KernelTable<ReduceArgs>("amin").everywhere<ReduceKernel<reduction::Min>, kAllTypes>();
constexpr auto kFindMax = KernelTable<FindArgs>("max").everywhere<FindKernel<reduction::Max>, kAllTypes>();
constexpr auto kFindMin = KernelTable<FindArgs>("min").everywhere<FindKernel<reduction::Min>, kAllTypes>();

struct ExtremumBackward : ReductionNode {
  using ReductionNode::ReductionNode;
  const char* name() const override { return "ExtremumBackward"; }
  TensorList backward(const TensorList& g) override {
    const Tensor x = saved(0), y = saved(1);
    return {expand(g[0]) * share((x == expand(y)).to(x.dtype()))};
  }
};

Tensor extremum(const char* op, const KernelTable<ReduceArgs>& table, const Tensor& x, const Dims& dims,
                bool keepdim) {
  const ReducedShapes shapes = reduced_shapes(x, dims, keepdim, op);
  ops::check_not_empty(x, shapes, op);
  Tensor y = ops::reduce(table, x, shapes, x.dtype());
  if (wants_grad(x)) record<ExtremumBackward>(y, x, shapes.kept, x.sizes()).save(x).save(y);
  return y;
}

// Where along `dim` the gradient goes is told by the indices alone.
struct FindBackward : ReductionNode {
  FindBackward(const Shape& kept_sizes, const Shape& x_sizes, int along)
      : ReductionNode(kept_sizes, x_sizes), dim(along) {}
  const char* name() const override { return "FindBackward"; }
  TensorList backward(const TensorList& g) override {
    const Tensor indices = saved(0);
    Shape line = Shape::filled(sizes.size(), 1);
    if (sizes.size() > 0) line[dim] = sizes[dim];
    const int64_t length = line.numel();
    const Tensor places =
        arange(Scalar(0), Scalar(length), Scalar(1), {.dtype = kInt64, .device = indices.device()});
    return {expand(g[0]) * (places.reshape(line) == expand(indices)).to(g[0].dtype())};
  }
  int dim;
};

struct Found {
  Tensor values, indices;
};

// Values are made only where they are asked for.
Found find(const KernelTable<FindArgs>& table, const Tensor& x, int64_t dim, bool keepdim, bool with_values,
           const char* op) {
  const ReducedShapes shapes = reduced_shapes(x, dim, keepdim, op);
  ops::check_not_empty(x, shapes, op);
  Found found{with_values ? empty(shapes.out, x.dtype(), x.device()) : Tensor(),
              empty(shapes.out, kInt64, x.device())};
  FindArgs args{x.arg(), {}, found.indices.arg()};
  if (with_values) args.values = found.values.arg();
  args.values.sizes = args.indices.sizes = shapes.kept;
  args.values.strides = args.indices.strides = contiguous_strides(shapes.kept);
  launch(table, x.dtype(), ops::stream_of(x), args);
  if (with_values && wants_grad(x)) {
    Tensor outputs[] = {found.values, Tensor()};
    record<FindBackward>(std::span(outputs), std::span(&x, 1), shapes.kept, x.sizes(),
                         wrap_dim(dim, x.dim(), op))
        .save(found.indices);
  }
  return found;
}

Tensor flat(const Tensor& x, const char* op) {
  ops::check_defined(op, x);
  return x.detach().reshape({-1});
}

}  // namespace

Tensor amax(const Tensor& x, const Dims& dims, bool keepdim) {
  return extremum("amax", kMax, x, dims, keepdim);
}
Tensor amin(const Tensor& x, const Dims& dims, bool keepdim) {
  return extremum("amin", kMin, x, dims, keepdim);
}
Tensor max(const Tensor& x) { return extremum("max", kMax, x, {}, false); }
Tensor min(const Tensor& x) { return extremum("min", kMin, x, {}, false); }

std::tuple<Tensor, Tensor> max(const Tensor& x, int64_t dim, bool keepdim) {
  Found found = find(kFindMax, x, dim, keepdim, true, "max");
  return {found.values, found.indices};
}
std::tuple<Tensor, Tensor> min(const Tensor& x, int64_t dim, bool keepdim) {
  Found found = find(kFindMin, x, dim, keepdim, true, "min");
  return {found.values, found.indices};
}

Tensor argmax(const Tensor& x) {
  return find(kFindMax, flat(x, "argmax"), 0, false, false, "argmax").indices;
}
Tensor argmax(const Tensor& x, int64_t dim, bool keepdim) {
  return find(kFindMax, x, dim, keepdim, false, "argmax").indices;
}
Tensor argmin(const Tensor& x) {
  return find(kFindMin, flat(x, "argmin"), 0, false, false, "argmin").indices;
}
Tensor argmin(const Tensor& x, int64_t dim, bool keepdim) {
  return find(kFindMin, x, dim, keepdim, false, "argmin").indices;
}

// Of bools the smallest says whether all are true, and the largest whether any is.
Tensor all(const Tensor& x, const Dims& dims, bool keepdim) {
  ops::check_defined("all", x);
  return ops::reduce(kMin, x.to(kBool), reduced_shapes(x, dims, keepdim, "all"), kBool);
}
Tensor any(const Tensor& x, const Dims& dims, bool keepdim) {
  ops::check_defined("any", x);
  return ops::reduce(kMax, x.to(kBool), reduced_shapes(x, dims, keepdim, "any"), kBool);
}

Tensor Tensor::max() const { return gradus::max(*this); }
Tensor Tensor::min() const { return gradus::min(*this); }
Tensor Tensor::argmax() const { return gradus::argmax(*this); }
Tensor Tensor::argmax(int64_t dim, bool keepdim) const { return gradus::argmax(*this, dim, keepdim); }

}  // namespace gradus
