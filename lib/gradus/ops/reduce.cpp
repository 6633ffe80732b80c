#include "kernels/reduce.cuh"

#include <gradus/ops/arithmetic.h>
#include <gradus/ops/common.h>
#include <gradus/ops/reduce.h>

namespace gradus {
namespace {

constexpr auto kSum = KernelTable<ReduceArgs>("sum").host<WideReduceKernel<reduction::Add>, kAllTypes>();
constexpr auto kMean = KernelTable<ReduceArgs>("mean").host<ReduceKernel<reduction::Mean>, kFloatingTypes>();

// Shapes of a reduction: the result's, and the same with reduced dimensions kept as 1.
struct Shapes {
  Shape out, kept;
};

Shapes reduced_shapes(const Tensor& x, const Dims& dims, bool keepdim, const char* op) {
  unsigned reduced = dims.empty() ? ~0u : 0u;
  for (int64_t dim : dims) {
    const int d = wrap_dim(dim, x.dim(), op);
    GRADUS_CHECK((reduced >> d & 1) == 0, "E-DIM", op, ": dim ", d,
                 " appears multiple times in the list of dims ", static_cast<const Shape&>(dims));
    reduced |= 1u << d;
  }
  Shapes shapes;
  for (int d = 0; d < x.dim(); ++d) {
    const bool gone = reduced >> d & 1;
    shapes.kept.push_back(gone ? 1 : x.sizes()[d]);
    if (!gone || keepdim) shapes.out.push_back(shapes.kept.back());
  }
  return shapes;
}

// x reduced into a new tensor of shape `out`; `kept` has x's rank.
Tensor reduce(const KernelTable<ReduceArgs>& table, const Tensor& x, const Shapes& shapes, DType dtype) {
  Tensor y = empty(shapes.out, dtype, x.device());
  TensorArg y_arg = y.arg();
  y_arg.sizes = shapes.kept;
  y_arg.strides = contiguous_strides(shapes.kept);
  const int64_t outputs = y.numel();
  launch(table, x.dtype(), ops::stream_of(y),
         ReduceArgs{x.arg(), y_arg, outputs == 0 ? 0 : x.numel() / outputs});
  return y;
}

// A gradient of the result, repeated for each element that went into it.
Tensor expand_back(const Tensor& g, const Shape& kept, const Shape& sizes) {
  return (g.dim() == 0 ? g : g.reshape(kept)).expand(sizes);
}

struct SumBackward : Node {
  SumBackward(const Shape& kept_sizes, const Shape& x_sizes) : kept(kept_sizes), sizes(x_sizes) {}
  const char* name() const override { return "SumBackward"; }
  TensorList backward(const TensorList& g) override { return {expand_back(g[0], kept, sizes)}; }
  Shape kept, sizes;
};

struct MeanBackward : Node {
  MeanBackward(const Shape& kept_sizes, const Shape& x_sizes) : kept(kept_sizes), sizes(x_sizes) {}
  const char* name() const override { return "MeanBackward"; }
  TensorList backward(const TensorList& g) override {
    const double count =
        static_cast<double>(sizes.numel()) / static_cast<double>(std::max<int64_t>(kept.numel(), 1));
    return {expand_back(div(g[0], count), kept, sizes)};
  }
  Shape kept, sizes;
};

DType sum_type(DType d) { return is_floating_point(d) ? d : kInt64; }

}  // namespace

Tensor sum(const Tensor& x, const Dims& dims, bool keepdim) {
  const Shapes shapes = reduced_shapes(x, dims, keepdim, "sum");
  Tensor y = reduce(kSum, x, shapes, sum_type(x.dtype()));
  if (wants_grad(x)) record<SumBackward>(y, x, shapes.kept, x.sizes());
  return y;
}

Tensor mean(const Tensor& x, const Dims& dims, bool keepdim) {
  GRADUS_CHECK(x.is_floating_point(), "E-DTYPE",
               "mean: could not infer output dtype. Input dtype must be "
               "a floating point dtype. Got: ",
               to_string(x.dtype()), hint("convert the input with .to(kFloat32)"));
  const Shapes shapes = reduced_shapes(x, dims, keepdim, "mean");
  Tensor y = reduce(kMean, x, shapes, x.dtype());
  if (wants_grad(x)) record<MeanBackward>(y, x, shapes.kept, x.sizes());
  return y;
}

Tensor sum_to_size(const Tensor& x, const Shape& sizes) {
  if (x.sizes() == sizes) return x;
  const int added = x.dim() - sizes.size();
  bool fits = added >= 0;
  Shapes shapes{sizes, {}};
  for (int d = 0; fits && d < x.dim(); ++d) {
    shapes.kept.push_back(d < added ? 1 : sizes[d - added]);
    fits = shapes.kept[d] == 1 || shapes.kept[d] == x.sizes()[d];
  }
  GRADUS_CHECK(fits, "E-SHAPE", "sum_to_size: size ", sizes, " is not expandable to size ", x.sizes());
  Tensor y = reduce(kSum, x, shapes, sum_type(x.dtype()));
  if (wants_grad(x)) record<SumBackward>(y, x, shapes.kept, x.sizes());
  return y;
}

Tensor Tensor::sum() const { return gradus::sum(*this); }
Tensor Tensor::sum(const Shape& dims, bool keepdim) const { return gradus::sum(*this, dims, keepdim); }
Tensor Tensor::mean() const { return gradus::mean(*this); }
Tensor Tensor::mean(const Shape& dims, bool keepdim) const { return gradus::mean(*this, dims, keepdim); }

}  // namespace gradus
