#include <gradus/ops/common.h>
#include <gradus/ops/copy.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/index.h>
#include <gradus/ops/picking.h>
#include <gradus/ops/view.h>

#include "kernels/pick.cuh"

namespace gradus {

using detail::Along;

namespace {

// index, in int64; `op` takes no other dtypes than integers.
Tensor as_index(const Tensor& x, const Tensor& index, const char* op) {
  ops::check_same_device(op, {{"input", x}, {"index", index}});
  GRADUS_CHECK(is_integral(index.dtype()), "E-DTYPE", op, ": expected an index of int64, got ",
               to_string(index.dtype()), hint("convert it with .to(kInt64)"));
  return index.to(kInt64);
}

// gather's rule: index has x's dimensions, and no more elements but along `dim`.
void check_gather(const Tensor& x, int dim, const Tensor& index, const char* op) {
  bool fits = x.dim() > 0 && index.dim() == x.dim();
  for (int d = 0; fits && d < x.dim(); ++d) fits = d == dim || index.sizes()[d] <= x.sizes()[d];
  GRADUS_CHECK(fits, "E-SHAPE", op, ": Size does not match: expected index ", index.sizes(),
               " to be smaller than self ", x.sizes(), " apart from dimension ", dim);
}

// The part of src that scatter uses: src may be larger than index.
Tensor scatter_source(const Tensor& x, const Tensor& index, const Tensor& src, const char* op) {
  GRADUS_CHECK(src.dtype() == x.dtype(), "E-DTYPE", op, ": expected src of dtype ", to_string(x.dtype()),
               ", got ", to_string(src.dtype()));
  bool fits = src.dim() == index.dim();
  for (int d = 0; fits && d < src.dim(); ++d) fits = index.sizes()[d] <= src.sizes()[d];
  GRADUS_CHECK(fits, "E-SHAPE", op, ": expected index ", index.sizes(), " to be smaller than src ",
               src.sizes());
  Tensor part = src;
  for (int d = 0; d < src.dim(); ++d)
    if (part.sizes()[d] != index.sizes()[d]) part = narrow(part, d, 0, index.sizes()[d]);
  return part;
}

Tensor scatter(const char* op, const Tensor& x, int64_t dim, const Tensor& given, const Tensor& src,
               bool accumulate) {
  const int d = ops::wrap_dim(dim, x, op);
  const Tensor index = as_index(x, given, op);
  ops::check_same_device(op, {{"input", x}, {"src", src}});
  check_gather(x, d, index, op);
  return detail::put(x, {op, d, true}, index, scatter_source(x, index, src, op), accumulate);
}

struct EmbeddingBackward : Node {
  EmbeddingBackward(const Shape& sizes, std::optional<int64_t> padding)
      : weight_sizes(sizes), padding_idx(padding) {}
  const char* name() const override { return "EmbeddingBackward"; }
  TensorList backward(const TensorList& g) override {
    const Tensor index = saved(0);
    const Tensor rows = padding_idx ? g[0].masked_fill(unsqueeze(index == *padding_idx, -1), 0) : g[0];
    return {detail::put_into_zeros(rows, {"embedding", 0, false}, index, weight_sizes)};
  }
  Shape weight_sizes;
  std::optional<int64_t> padding_idx;
};

}  // namespace

Tensor index_select(const Tensor& x, int64_t dim, const Tensor& given) {
  const int d = ops::wrap_dim(dim, x, "index_select");
  ops::check_defined("index_select", given, "index");
  GRADUS_CHECK(given.dim() <= 1 && x.dim() > 0, "E-SHAPE",
               "index_select: index is supposed to be a 0-D or 1-D tensor, got shape ", given.sizes(),
               " for an input of shape ", x.sizes());
  Tensor index = as_index(x, given, "index_select");
  if (index.dim() == 0) index = unsqueeze(index, 0);
  return detail::pick(x, {"index_select", d, false}, index);
}

Tensor gather(const Tensor& x, int64_t dim, const Tensor& given) {
  const int d = ops::wrap_dim(dim, x, "gather");
  const Tensor index = as_index(x, given, "gather");
  check_gather(x, d, index, "gather");
  return detail::pick(x, {"gather", d, true}, index);
}

Tensor take_along_dim(const Tensor& x, const Tensor& index, int64_t dim) {
  const int d = ops::wrap_dim(dim, x, "take_along_dim");
  ops::check_defined("take_along_dim", index, "index");
  GRADUS_CHECK(index.dim() == x.dim() && x.dim() > 0, "E-SHAPE",
               "take_along_dim: input and indices should have the same number of dimensions, got ", x.dim(),
               " and ", index.dim());
  Shape sizes = index.sizes(), x_sizes = x.sizes();
  x_sizes[d] = sizes[d];
  sizes = broadcast_shapes(sizes, x_sizes, "take_along_dim");
  x_sizes = sizes, x_sizes[d] = x.sizes()[d];
  return gather(expand(x, x_sizes), d, expand(index, sizes));
}

Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
  return scatter("scatter", x, dim, index, src, false);
}
Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, Scalar value) {
  ops::check_same_device("scatter", {{"input", x}, {"index", index}});
  const Tensor src = scalar_tensor(value, {.dtype = x.dtype(), .device = x.device()});
  return scatter("scatter", x, dim, index, expand(src, index.sizes()), false);
}
Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
  return scatter("scatter_add", x, dim, index, src, true);
}

Tensor index_add(const Tensor& x, int64_t dim, const Tensor& given, const Tensor& source) {
  const int d = ops::wrap_dim(dim, x, "index_add");
  const Tensor index = as_index(x, given, "index_add");
  ops::check_same_device("index_add", {{"input", x}, {"source", source}});
  GRADUS_CHECK(source.dtype() == x.dtype(), "E-DTYPE", "index_add: expected source of dtype ",
               to_string(x.dtype()), ", got ", to_string(source.dtype()));
  GRADUS_CHECK(index.dim() == 1 && x.dim() > 0, "E-SHAPE",
               "index_add: index is supposed to be 1-D, got shape ", index.sizes());
  Shape sizes = x.sizes();
  sizes[d] = index.numel();
  GRADUS_CHECK(source.sizes() == sizes, "E-SHAPE", "index_add: expected source of shape ", sizes, ", got ",
               source.sizes());
  return detail::put(x, {"index_add", d, false}, index, source, true);
}

Tensor nonzero(const Tensor& x) {
  ops::check_defined("nonzero", x);
  NoGradGuard no_grad;
  const Tensor mask = x.to(kBool).contiguous().cpu();
  const bool* hit = mask.data<bool>();
  std::vector<int64_t> places;
  int64_t count = 0;
  for (int64_t i = 0; i < mask.numel(); ++i) {
    if (!hit[i]) continue;
    ++count;
    const size_t row = places.size();
    places.resize(row + static_cast<size_t>(x.dim()));
    int64_t rest = i;
    for (int d = x.dim() - 1; d >= 0; rest /= x.sizes()[d], --d)
      places[row + static_cast<size_t>(d)] = rest % x.sizes()[d];
  }
  return tensor(places, {count, x.dim()}, {.device = x.device()});
}

Tensor masked_select(const Tensor& x, const Tensor& mask) {
  ops::check_same_device("masked_select", {{"input", x}, {"mask", mask}});
  GRADUS_CHECK(mask.dtype() == kBool, "E-DTYPE", "masked_select: expected a bool mask, got ",
               to_string(mask.dtype()));
  const Shape sizes = broadcast_shapes(x.sizes(), mask.sizes(), "masked_select");
  const Tensor places = nonzero(flatten(expand(mask, sizes)));
  return index_select(flatten(expand(x, sizes)), 0, squeeze(places, 1));
}

Tensor one_hot(const Tensor& given, int64_t num_classes) {
  const Tensor index = as_index(given, given, "one_hot");
  GRADUS_CHECK(num_classes != -1 || index.numel() > 0, "E-ARG",
               "one_hot: Can not infer total number of classes from empty tensor", hint("pass num_classes"));
  GRADUS_CHECK(num_classes >= -1, "E-ARG", "one_hot: num_classes must not be negative, got ", num_classes);
  Shape sizes = index.sizes();
  sizes.push_back(num_classes == -1 ? index.max().item<int64_t>() + 1 : num_classes);
  Tensor y = zeros(sizes, kInt64, index.device());
  const Tensor places = unsqueeze(index, -1);
  const Tensor one = expand(scalar_tensor(1, {.device = index.device()}), places.sizes());
  detail::put_(y, {"one_hot", index.dim(), true}, places, one, false);
  return y;
}

Tensor embedding(const Tensor& weight, const Tensor& given, std::optional<int64_t> padding_idx) {
  ops::check_defined("embedding", weight, "weight");
  GRADUS_CHECK(weight.dim() == 2, "E-SHAPE", "embedding: 'weight' must be 2-D, got shape ", weight.sizes());
  const int64_t rows = weight.sizes()[0];
  if (padding_idx) {
    GRADUS_CHECK(*padding_idx >= -rows && *padding_idx < rows, "E-INDEX", "embedding: padding_idx ",
                 *padding_idx, " is out of bounds for a table of ", rows, " rows");
    if (*padding_idx < 0) *padding_idx += rows;
  }
  const Tensor index = as_index(weight, given, "embedding");
  Tensor y;
  {
    NoGradGuard no_grad;
    y = detail::pick(weight, {"embedding", 0, false}, index);
  }
  if (wants_grad(weight)) record<EmbeddingBackward>(y, weight, weight.sizes(), padding_idx).save(index);
  return y;
}

Tensor Tensor::index_select(int64_t dim, const Tensor& index) const {
  return gradus::index_select(*this, dim, index);
}
Tensor Tensor::gather(int64_t dim, const Tensor& index) const { return gradus::gather(*this, dim, index); }

}  // namespace gradus
