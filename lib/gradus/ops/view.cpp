#include <gradus/ops/cat.h>
#include <gradus/ops/common.h>
#include <gradus/ops/copy.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/view.h>

#include <limits>

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
struct SliceBackward : Node {
  SliceBackward(const Shape& sizes, int d, int64_t first, int64_t by)
      : input_sizes(sizes), dim(d), start(first), step(by) {}
  const char* name() const override { return "SliceBackward"; }
  TensorList backward(const TensorList& g) override {
    return {detail::slice_backward(g[0], input_sizes, dim, start, step)};
  }
  Shape input_sizes;
  int dim;
  int64_t start, step;
};
struct SelectBackward : Node {
  SelectBackward(const Shape& sizes, int d, int64_t i) : input_sizes(sizes), dim(d), index(i) {}
  const char* name() const override { return "SelectBackward"; }
  TensorList backward(const TensorList& g) override {
    return {detail::slice_backward(unsqueeze(g[0], dim), input_sizes, dim, index, 1)};
  }
  Shape input_sizes;
  int dim;
  int64_t index;
};
// Of slice_backward(), which is linear: its derivative is the slice.
struct SliceBackwardBackward : Node {
  SliceBackwardBackward(int d, int64_t first, int64_t n, int64_t by)
      : dim(d), start(first), length(n), step(by) {}
  const char* name() const override { return "SliceBackwardBackward"; }
  TensorList backward(const TensorList& g) override {
    return {slice(g[0], dim, start, length == 0 ? start : start + (length - 1) * step + 1, step)};
  }
  int dim;
  int64_t start, length, step;
};
// Of split, chunk and unbind: one node for all pieces, so that their gradients are joined in one pass.
struct SplitBackward : Node {
  SplitBackward(int d, std::span<const Tensor> pieces, const Tensor& x) : dim(d), like(x.detach()) {
    for (const Tensor& piece : pieces) lengths.push_back(piece.size(d));
  }
  const char* name() const override { return "SplitBackward"; }
  TensorList backward(const TensorList& g) override {
    TensorList pieces;
    for (size_t i = 0; i < g.size(); ++i) {
      Shape sizes = like.sizes();
      sizes[dim] = lengths[i];
      pieces.push_back(g[i].defined() ? g[i] : like.new_zeros(sizes));
    }
    return {cat(pieces, dim)};
  }
  int dim;
  Tensor like;
  std::vector<int64_t> lengths;
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
  int unknown = -1;
  int64_t known = 1;
  for (int d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == -1) {
      GRADUS_CHECK(unknown < 0, "E-SHAPE", op, ": only one dimension can be inferred, got ", sizes);
      unknown = d;
    } else {
      GRADUS_CHECK(sizes[d] >= 0, "E-SHAPE", op, ": invalid shape dimension ", sizes[d], " in ", sizes);
      known *= sizes[d];
    }
  }
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

Tensor detail::slice_backward(const Tensor& g, const Shape& sizes, int dim, int64_t start, int64_t step) {
  const MemoryFormat format = sizes.size() == 4 ? g.suggest_memory_format() : MemoryFormat::contiguous;
  Tensor y = zeros(sizes, {.dtype = g.dtype(), .device = g.device(), .memory_format = format});
  Shape strides = y.strides();
  strides[dim] *= step;
  ops::copy_into(make_view(y, g.sizes(), strides, start * y.strides()[dim]), g);
  if (wants_grad(g)) record<SliceBackwardBackward>(y, g, dim, start, g.sizes()[dim], step);
  return y;
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
  const int first = wrap_dim(start_dim, x.dim(), "flatten"), last = wrap_dim(end_dim, x.dim(), "flatten");
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
  const int a = wrap_dim(dim0, x.dim(), "transpose"), b = wrap_dim(dim1, x.dim(), "transpose");
  if (a == b) return x;
  Shape sizes = x.sizes(), strides = x.strides();
  std::swap(sizes[a], sizes[b]);
  std::swap(strides[a], strides[b]);
  return make<TransposeBackward>(x, sizes, strides, x.storage_offset(), a, b);
}

Tensor t(const Tensor& x) {
  GRADUS_CHECK(x.dim() <= 2, "E-SHAPE", "t: expects a tensor with <= 2 dimensions, but self is ", x.dim(),
               "D of shape ", x.sizes(), hint("use transpose() or permute()"));
  return x.dim() < 2 ? x : transpose(x, 0, 1);
}

Tensor permute(const Tensor& x, const Shape& dims) {
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
  return make<ExpandBackward>(x, sizes, strides, x.storage_offset(), x.sizes());
}

Tensor squeeze(const Tensor& x) {
  Shape sizes, strides;
  for (int d = 0; d < x.dim(); ++d) {
    if (x.sizes()[d] == 1) continue;
    sizes.push_back(x.sizes()[d]);
    strides.push_back(x.strides()[d]);
  }
  return make<ReshapeBackward>(x, sizes, strides, x.storage_offset(), "SqueezeBackward", x.sizes());
}

Tensor squeeze(const Tensor& x, int64_t dim) {
  const int d = wrap_dim(dim, x.dim(), "squeeze");
  if (x.dim() == 0 || x.sizes()[d] != 1) return x;
  Shape sizes = x.sizes(), strides = x.strides();
  sizes.erase(d);
  strides.erase(d);
  return make<ReshapeBackward>(x, sizes, strides, x.storage_offset(), "SqueezeBackward", x.sizes());
}

Tensor unsqueeze(const Tensor& x, int64_t dim) {
  const int d = wrap_dim(dim, x.dim() + 1, "unsqueeze");
  Shape sizes = x.sizes(), strides = x.strides();
  strides.insert(d, d < x.dim() ? sizes[d] * strides[d] : 1);
  sizes.insert(d, 1);
  return make<ReshapeBackward>(x, sizes, strides, x.storage_offset(), "UnsqueezeBackward", x.sizes());
}

namespace {

// x[start : start + length * step : step]; the arguments were checked.
Tensor take(const Tensor& x, int dim, int64_t start, int64_t length, int64_t step) {
  Shape sizes = x.sizes(), strides = x.strides();
  const int64_t offset = x.storage_offset() + start * strides[dim];
  sizes[dim] = length;
  strides[dim] *= step;
  return make<SliceBackward>(x, sizes, strides, offset, x.sizes(), dim, start, step);
}

int checked_dim(const Tensor& x, int64_t dim, const char* op) {
  GRADUS_CHECK(x.dim() > 0, "E-DIM", op, ": cannot be applied to a 0-dim tensor");
  return wrap_dim(dim, x.dim(), op);
}

}  // namespace

Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length) {
  const int d = checked_dim(x, dim, "narrow");
  const int64_t size = x.sizes()[d], first = start < 0 ? start + size : start;
  GRADUS_CHECK(first >= 0 && length >= 0 && first <= size && length <= size - first, "E-INDEX",
               "narrow: start (", start, ") + length (", length, ") exceeds dimension size (", size,
               ") of dimension ", d);
  return take(x, d, first, length, 1);
}

Tensor select(const Tensor& x, int64_t dim, int64_t index) {
  const int d = checked_dim(x, dim, "select");
  Shape sizes = x.sizes(), strides = x.strides();
  GRADUS_CHECK(index >= -sizes[d] && index < sizes[d], "E-INDEX", "select: index ", index,
               " is out of bounds for dimension ", d, " with size ", sizes[d]);
  const int64_t i = index < 0 ? index + sizes[d] : index;
  const int64_t offset = x.storage_offset() + i * strides[d];
  sizes.erase(d);
  strides.erase(d);
  return make<SelectBackward>(x, sizes, strides, offset, x.sizes(), d, i);
}

Tensor slice(const Tensor& x, int64_t dim, int64_t start, int64_t end, int64_t step) {
  const int d = checked_dim(x, dim, "slice");
  GRADUS_CHECK(step > 0, "E-ARG", "slice: step must be positive, got ", step, hint("use flip()"));
  const int64_t size = x.sizes()[d];
  auto bound = [size](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size); };
  const int64_t first = bound(start), last = std::max(bound(end), first);
  return take(x, d, first, (last - first + step - 1) / step, step);
}

std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& lengths, int64_t dim) {
  const int d = checked_dim(x, dim, "split");
  int64_t total = 0;
  for (int64_t n : lengths) {
    GRADUS_CHECK(n >= 0, "E-SHAPE", "split: sizes must be non-negative, got ", n);
    total += n;
  }
  GRADUS_CHECK(total == x.sizes()[d], "E-SHAPE", "split: split_sizes sum up to ", total,
               ", expected exactly ", x.sizes()[d], " (input tensor's size at dimension ", d, ")");
  std::vector<Tensor> pieces;
  pieces.reserve(lengths.size());
  Shape sizes = x.sizes();
  int64_t offset = x.storage_offset();
  for (int64_t n : lengths) {
    sizes[d] = n;
    pieces.push_back(detail::make_view(x, sizes, x.strides(), offset));
    offset += n * x.strides()[d];
  }
  if (wants_grad(x) && !pieces.empty())
    record<SplitBackward>(std::span(pieces), std::span(&x, 1), d, std::span<const Tensor>(pieces), x);
  return pieces;
}

std::vector<Tensor> split(const Tensor& x, int64_t split_size, int64_t dim) {
  const int d = checked_dim(x, dim, "split");
  const int64_t size = x.sizes()[d];
  GRADUS_CHECK(split_size > 0 || (split_size == 0 && size == 0), "E-ARG",
               "split: split_size must be positive, got ", split_size, " for a dimension of size ", size);
  std::vector<int64_t> lengths;
  for (int64_t at = 0; at < size; at += split_size) lengths.push_back(std::min(split_size, size - at));
  if (lengths.empty()) lengths.push_back(0);
  return split(x, lengths, d);
}

std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int64_t dim) {
  const int d = checked_dim(x, dim, "chunk");
  GRADUS_CHECK(chunks > 0, "E-ARG", "chunk: expects `chunks` to be greater than 0, got ", chunks);
  const int64_t size = x.sizes()[d];
  if (size == 0) return split(x, std::vector<int64_t>(static_cast<size_t>(chunks), 0), d);
  return split(x, (size + chunks - 1) / chunks, d);
}

std::vector<Tensor> unbind(const Tensor& x, int64_t dim) {
  const int d = checked_dim(x, dim, "unbind");
  std::vector<Tensor> pieces = split(x, std::vector<int64_t>(static_cast<size_t>(x.sizes()[d]), 1), d);
  for (Tensor& piece : pieces) piece = squeeze(piece, d);
  return pieces;
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
Tensor Tensor::narrow(int64_t dim, int64_t start, int64_t length) const {
  return gradus::narrow(*this, dim, start, length);
}
Tensor Tensor::select(int64_t dim, int64_t index) const { return gradus::select(*this, dim, index); }
Tensor Tensor::slice(int64_t dim, int64_t start, int64_t end, int64_t step) const {
  return gradus::slice(*this, dim, start, end, step);
}
std::vector<Tensor> Tensor::chunk(int64_t n, int64_t dim) const { return gradus::chunk(*this, n, dim); }
std::vector<Tensor> Tensor::split(int64_t n, int64_t dim) const { return gradus::split(*this, n, dim); }

}  // namespace gradus
