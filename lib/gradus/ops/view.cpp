#include <gradus/ops/common.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/view.h>

namespace gradus {
namespace {

// Of view, reshape, squeeze and unsqueeze.
struct ReshapeBackward : Node {
  ReshapeBackward(const char* op, const Shape& sizes) : op_name(op), input_sizes(sizes) {}
  const char* name() const override { return op_name; }
  TensorList backward(const TensorList& g) override { return {reshape(g[0], input_sizes)}; }
  const char* op_name;
  Shape input_sizes;
};
struct TransposeBackward : Node {
  TransposeBackward(int a, int b) : dim0(a), dim1(b) {}
  const char* name() const override { return "TransposeBackward"; }
  TensorList backward(const TensorList& g) override { return {transpose(g[0], dim0, dim1)}; }
  int dim0, dim1;
};
struct PermuteBackward : Node {
  explicit PermuteBackward(const Shape& back) : inverse(back) {}
  const char* name() const override { return "PermuteBackward"; }
  TensorList backward(const TensorList& g) override { return {permute(g[0], inverse)}; }
  Shape inverse;
};
struct ExpandBackward : Node {
  explicit ExpandBackward(const Shape& sizes) : input_sizes(sizes) {}
  const char* name() const override { return "ExpandBackward"; }
  TensorList backward(const TensorList& g) override { return {sum_to_size(g[0], input_sizes)}; }
  Shape input_sizes;
};
// The view, recorded if a gradient is wanted.
template <class Backward, class... A>
Tensor make(const Tensor& x, const Shape& sizes, const Shape& strides, int64_t offset, const A&... args) {
  Tensor y = detail::make_view(x, sizes, strides, offset);
  if (wants_grad(x)) record<Backward>(y, x, args...);
  return y;
}

// `sizes` with its -1, if any, replaced.
Shape infer_sizes(const Tensor& x, Shape sizes, const char* op) {
  ops::check_defined(op, x);
  int unknown = -1;
  Shape given = sizes;
  for (int d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == -1) {
      GRADUS_CHECK(unknown < 0, "E-SHAPE", op, ": only one dimension can be inferred, got ", sizes);
      unknown = d;
      given[d] = 1;
    } else {
      GRADUS_CHECK(sizes[d] >= 0, "E-SHAPE", op, ": invalid shape dimension ", sizes[d], " in ", sizes);
    }
  }
  const int64_t known = checked_bytes(given, 1, op);
  const int64_t numel = x.numel();
  const bool fits = unknown < 0 ? known == numel : known > 0 && numel % known == 0;
  GRADUS_CHECK(fits, "E-SHAPE", op, ": shape '", sizes, "' is invalid for input of size ", numel,
               " with shape ", x.sizes());
  if (unknown >= 0) sizes[unknown] = numel / known;
  return sizes;
}

}  // namespace

// Walks both shapes from the last dimension, piece by piece: a piece is a run of x's dimensions that lie in
// memory as one, and must be covered by whole dimensions of the new shape.
std::optional<Shape> detail::view_strides(const Tensor& x, const Shape& sizes) {
  if (x.is_contiguous() || x.numel() == 0) return contiguous_strides(sizes);
  Shape strides = sizes;
  int at = sizes.size() - 1;
  int64_t base = x.strides().back(), have = 1, want = 1;
  for (int d = x.dim() - 1; d >= 0; --d) {
    have *= x.sizes()[d];
    const bool piece_ends = d == 0 || (x.sizes()[d - 1] != 1 && x.strides()[d - 1] != have * base);
    if (!piece_ends) continue;
    for (; at >= 0 && (want < have || sizes[at] == 1); --at) {
      strides[at] = want * base;
      want *= sizes[at];
    }
    if (want != have) return {};
    if (d > 0) base = x.strides()[d - 1], have = want = 1;
  }
  return at < 0 ? std::optional(strides) : std::nullopt;
}

Tensor view(const Tensor& x, const Shape& wanted) {
  const Shape sizes = infer_sizes(x, wanted, "view");
  const std::optional<Shape> strides = detail::view_strides(x, sizes);
  GRADUS_CHECK(strides, "E-STRIDE", "view: view size ", sizes, " is not compatible with input tensor's size ",
               x.sizes(), " and stride ", x.strides(),
               " (at least one dimension spans across two contiguous subspaces)",
               hint("Use .reshape(...) instead: it copies where it must"));
  return make<ReshapeBackward>(x, sizes, *strides, x.storage_offset(), "ViewBackward", x.sizes());
}

Tensor reshape(const Tensor& x, const Shape& wanted) {
  const Shape sizes = infer_sizes(x, wanted, "reshape");
  const std::optional<Shape> strides = detail::view_strides(x, sizes);
  if (!strides) return reshape(x.contiguous(), sizes);
  return make<ReshapeBackward>(x, sizes, *strides, x.storage_offset(), "ReshapeBackward", x.sizes());
}

Tensor flatten(const Tensor& x, int64_t start_dim, int64_t end_dim) {
  const int first = ops::wrap_dim(start_dim, x, "flatten"), last = ops::wrap_dim(end_dim, x, "flatten");
  GRADUS_CHECK(first <= last, "E-DIM", "flatten: start_dim ", start_dim, " comes after end_dim ", end_dim);
  if (x.dim() == 0) return reshape(x, {1});
  if (first == last) return x;
  Shape sizes;
  int64_t product = 1;
  for (int d = 0; d < x.dim(); ++d) {
    if (d >= first && d <= last) product *= x.sizes()[d];
    if (d == last) sizes.push_back(product);
    if (d < first || d > last) sizes.push_back(x.sizes()[d]);
  }
  return reshape(x, sizes);
}

Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1) {
  const int a = ops::wrap_dim(dim0, x, "transpose"), b = ops::wrap_dim(dim1, x, "transpose");
  if (a == b) return x;
  Shape sizes = x.sizes(), strides = x.strides();
  std::swap(sizes[a], sizes[b]);
  std::swap(strides[a], strides[b]);
  return make<TransposeBackward>(x, sizes, strides, x.storage_offset(), a, b);
}

Tensor t(const Tensor& x) {
  ops::check_defined("t", x);
  GRADUS_CHECK(x.dim() <= 2, "E-SHAPE", "t: expects a tensor with <= 2 dimensions, but self is ", x.dim(),
               "D of shape ", x.sizes(), hint("use transpose() or permute()"));
  return x.dim() < 2 ? x : transpose(x, 0, 1);
}

Tensor permute(const Tensor& x, const Shape& dims) {
  ops::check_defined("permute", x);
  GRADUS_CHECK(dims.size() == x.dim(), "E-DIM", "permute: expected ", x.dim(),
               " dimensions for a tensor of shape ", x.sizes(), ", got ", dims);
  Shape sizes = x.sizes(), strides = x.strides(), inverse = Shape::filled(x.dim(), -1);
  for (int i = 0; i < x.dim(); ++i) {
    const int d = wrap_dim(dims[i], x.dim(), "permute");
    GRADUS_CHECK(inverse[d] < 0, "E-DIM", "permute: dimension ", d, " occurs twice in ", dims);
    inverse[d] = i;
    sizes[i] = x.sizes()[d];
    strides[i] = x.strides()[d];
  }
  return make<PermuteBackward>(x, sizes, strides, x.storage_offset(), inverse);
}

Tensor expand(const Tensor& x, const Shape& wanted) {
  ops::check_defined("expand", x);
  Shape sizes = wanted, strides = wanted;
  const int added = wanted.size() - x.dim();
  GRADUS_CHECK(added >= 0, "E-SHAPE", "expand: the number of sizes provided (", wanted.size(),
               ") must be greater or equal to the number of dimensions in the tensor (", x.dim(), ")");
  for (int d = 0; d < wanted.size(); ++d) {
    const int64_t size = d < added ? 1 : x.sizes()[d - added];
    if (wanted[d] == -1 && d >= added) sizes[d] = size;
    GRADUS_CHECK(sizes[d] >= 0 && (sizes[d] == size || size == 1), "E-SHAPE",
                 "expand: the expanded size of the tensor (", wanted[d], ") must match the existing size (",
                 size, ") at non-singleton dimension ", d, "; target sizes: ", wanted,
                 ", tensor sizes: ", x.sizes());
    strides[d] = d < added || (size == 1 && sizes[d] != 1) ? 0 : x.strides()[d - added];
  }
  checked_bytes(sizes, element_size(x.dtype()), "expand");
  return make<ExpandBackward>(x, sizes, strides, x.storage_offset(), x.sizes());
}

Tensor squeeze(const Tensor& x) {
  ops::check_defined("squeeze", x);
  Shape sizes, strides;
  for (int d = 0; d < x.dim(); ++d) {
    if (x.sizes()[d] == 1) continue;
    sizes.push_back(x.sizes()[d]);
    strides.push_back(x.strides()[d]);
  }
  return make<ReshapeBackward>(x, sizes, strides, x.storage_offset(), "SqueezeBackward", x.sizes());
}

Tensor squeeze(const Tensor& x, int64_t dim) {
  const int d = ops::wrap_dim(dim, x, "squeeze");
  if (x.dim() == 0 || x.sizes()[d] != 1) return x;
  Shape sizes = x.sizes(), strides = x.strides();
  sizes.erase(d);
  strides.erase(d);
  return make<ReshapeBackward>(x, sizes, strides, x.storage_offset(), "SqueezeBackward", x.sizes());
}

Tensor unsqueeze(const Tensor& x, int64_t dim) {
  ops::check_defined("unsqueeze", x);
  const int d = wrap_dim(dim, x.dim() + 1, "unsqueeze");
  Shape sizes = x.sizes(), strides = x.strides();
  strides.insert(d, d < x.dim() ? sizes[d] * strides[d] : 1);
  sizes.insert(d, 1);
  return make<ReshapeBackward>(x, sizes, strides, x.storage_offset(), "UnsqueezeBackward", x.sizes());
}

Tensor Tensor::view(const Shape& sizes) const { return gradus::view(*this, sizes); }
Tensor Tensor::reshape(const Shape& sizes) const { return gradus::reshape(*this, sizes); }
Tensor Tensor::flatten(int64_t start, int64_t end) const { return gradus::flatten(*this, start, end); }
Tensor Tensor::transpose(int64_t a, int64_t b) const { return gradus::transpose(*this, a, b); }
Tensor Tensor::t() const { return gradus::t(*this); }
Tensor Tensor::permute(const Shape& dims) const { return gradus::permute(*this, dims); }
Tensor Tensor::expand(const Shape& sizes) const { return gradus::expand(*this, sizes); }
Tensor Tensor::squeeze() const { return gradus::squeeze(*this); }
Tensor Tensor::squeeze(int64_t dim) const { return gradus::squeeze(*this, dim); }
Tensor Tensor::unsqueeze(int64_t dim) const { return gradus::unsqueeze(*this, dim); }
}  // namespace gradus
