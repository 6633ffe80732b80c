#include <gradus/ops/common.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/picking.h>

#include "kernels/pick.cuh"

namespace gradus::detail {
namespace {

constexpr auto kPick =
    KernelTable<PickArgs>("pick").host(kAllTypes, &kernels::pick_host).cuda<&kernels::pick_cuda>(kAllTypes);
constexpr auto kPut =
    KernelTable<PutArgs>("put").host(kAllTypes, &kernels::put_host).cuda<&kernels::put_cuda>(kAllTypes);
constexpr auto kPutAdd = KernelTable<PutArgs>("put_add").everywhere<kernels::PutAddKernel, kNumericTypes>();
constexpr auto kLinearIndex = KernelTable<LinearIndexArgs>("linear_index")
                                  .host(dtypes(kInt64), &kernels::linear_index_host)
                                  .cuda<&kernels::linear_index_cuda>(dtypes(kInt64));

IndexedDim indexed_dim(const Tensor& x, const Along& along, const Tensor& index) {
  Shape walk = x.strides();
  if (along.gather) {
    walk[along.dim] = 0;
  } else {
    walk.erase(along.dim);
    for (int i = 0; i < index.dim(); ++i) walk.insert(along.dim, 0);
  }
  return {walk, x.sizes()[along.dim], x.strides()[along.dim], along.dim, along.negative, along.op};
}

// As it broadcasts to the picked elements: index's dimensions stand where `dim` was.
TensorArg index_arg(const Tensor& x, const Along& along, const Tensor& index) {
  TensorArg arg = index.arg();
  if (along.gather) return arg;
  for (int d = along.dim + 1; d < x.dim(); ++d) {
    arg.sizes.push_back(1);
    arg.strides.push_back(0);
  }
  return arg;
}

struct PickBackward : Node {
  PickBackward(const Along& a, const Shape& sizes) : along(a), input_sizes(sizes) {}
  const char* name() const override { return along.gather ? "GatherBackward" : "IndexBackward"; }
  TensorList backward(const TensorList& g) override {
    return {put_into_zeros(g[0], along, saved(0), input_sizes)};
  }
  Along along;
  Shape input_sizes;
};

struct PutIntoZerosBackward : Node {
  explicit PutIntoZerosBackward(const Along& a) : along(a) {}
  const char* name() const override { return "PutIntoZerosBackward"; }
  TensorList backward(const TensorList& g) override { return {pick(g[0], along, saved(0))}; }
  Along along;
};

struct PutBackward : Node {
  PutBackward(const Along& a, bool add) : along(a), accumulate(add) {}
  const char* name() const override { return along.gather ? "ScatterBackward" : "IndexPutBackward"; }
  TensorList backward(const TensorList& g) override {
    const Tensor index = saved(0);
    Tensor values;
    if (wants(1) || !accumulate) values = pick(g[0], along, index);
    Tensor input = g[0];
    if (wants(0) && !accumulate) input = put(g[0], along, index, zeros_like(values), false);
    return {wants(0) ? input : Tensor(), wants(1) ? values : Tensor()};
  }
  Along along;
  bool accumulate;
};

}  // namespace

Shape picked_sizes(const Shape& x, const Along& along, const Shape& index) {
  if (along.gather) return index;
  Shape sizes = x;
  sizes.erase(along.dim);
  for (int i = 0; i < index.size(); ++i) sizes.insert(along.dim + i, index[i]);
  return sizes;
}

Tensor pick(const Tensor& x, const Along& along, const Tensor& index) {
  Tensor y = empty(picked_sizes(x.sizes(), along, index.sizes()), x.dtype(), x.device());
  launch(kPick, y.dtype(), ops::stream_of(y),
         PickArgs{x.arg(), index_arg(x, along, index), y.arg(), indexed_dim(x, along, index)});
  if (wants_grad(x)) record<PickBackward>(y, x, along, x.sizes()).save(index);
  return y;
}

void put_(const Tensor& x, const Along& along, const Tensor& index, const Tensor& values, bool accumulate) {
  launch(accumulate ? kPutAdd : kPut, x.dtype(), ops::stream_of(x),
         PutArgs{values.arg(), index_arg(x, along, index), x.arg(), indexed_dim(x, along, index)});
}

Tensor put_into_zeros(const Tensor& g, const Along& along, const Tensor& index, const Shape& sizes) {
  const bool half = g.dtype() == kFloat16 || g.dtype() == kBFloat16;
  if (half) return put_into_zeros(g.to(kFloat32), along, index, sizes).to(g.dtype());
  Tensor y = zeros(sizes, g.dtype(), g.device());
  put_(y, along, index, g, true);
  if (wants_grad(g)) record<PutIntoZerosBackward>(y, g, along).save(index);
  return y;
}

Tensor put(const Tensor& x, const Along& along, const Tensor& index, const Tensor& values, bool accumulate) {
  Tensor y;
  {
    NoGradGuard no_grad;
    y = x.clone();
  }
  put_(y, along, index, values, accumulate);
  if (wants_grad(x, values)) record<PutBackward>(y, {x, values}, along, accumulate).save(index);
  return y;
}

Tensor linear_index(const Tensor& before, const Tensor& index, int64_t size, int dim, const char* op) {
  Tensor y = empty(index.sizes(), kInt64, index.device());
  launch(kLinearIndex, kInt64, ops::stream_of(y),
         LinearIndexArgs{ops::optional_arg(before), index.arg(), y.arg(),
                         IndexedDim{{}, size, 1, dim, true, op}});
  return y;
}

}  // namespace gradus::detail
