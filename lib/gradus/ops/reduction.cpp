#include <gradus/ops/arithmetic.h>
#include <gradus/ops/common.h>
#include <gradus/ops/reduction.h>

#include "kernels/reduce.cuh"

namespace gradus::ops {

ReducedShapes reduced_shapes(const Tensor& x, const Dims& dims, bool keepdim, const char* op) {
  check_defined(op, x);
  unsigned reduced = dims.empty() ? ~0u : 0u;
  for (int64_t dim : dims) {
    const int d = gradus::wrap_dim(dim, x.dim(), op);
    GRADUS_CHECK((reduced >> d & 1) == 0, "E-DIM", op, ": dim ", d, " appears multiple times in the list ",
                 static_cast<const Shape&>(dims));
    reduced |= 1u << d;
  }
  ReducedShapes shapes;
  for (int d = 0; d < x.dim(); ++d) {
    const bool gone = reduced >> d & 1;
    shapes.kept.push_back(gone ? 1 : x.sizes()[d]);
    if (!gone || keepdim) shapes.out.push_back(shapes.kept.back());
  }
  return shapes;
}

Tensor reduce(const KernelTable<ReduceArgs>& table, const Tensor& x, const ReducedShapes& shapes,
              DType dtype) {
  Tensor y = empty(shapes.out, dtype, x.device());
  TensorArg out = y.arg();  // with x's rank, as the kernel wants it
  out.sizes = shapes.kept;
  out.strides = contiguous_strides(shapes.kept);
  const int64_t outputs = out.numel();
  launch(table, x.dtype(), stream_of(y), ReduceArgs{x.arg(), out, outputs == 0 ? 0 : x.numel() / outputs});
  return y;
}

void check_not_empty(const Tensor& x, const ReducedShapes& shapes, const char* op) {
  if (x.numel() > 0) return;
  for (int d = 0; d < x.dim(); ++d)
    GRADUS_CHECK(x.sizes()[d] != 0 || shapes.kept[d] == 0, "E-SHAPE", op, ": Expected reduction dim ", d,
                 " to have non-zero size, got shape ", x.sizes(),
                 hint("the largest or smallest of no elements does not exist"));
}

Dims reduced_dims(const Shape& kept) {
  Dims dims;
  for (int d = 0; d < kept.size(); ++d)
    if (kept[d] == 1) dims.push_back(d);
  return dims;
}

Tensor ReductionNode::share(const Tensor& found) const {
  const Dims dims = reduced_dims(kept);
  return dims.empty() ? found : found / sum(found, dims, true);
}

}  // namespace gradus::ops
