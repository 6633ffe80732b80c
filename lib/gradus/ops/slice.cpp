// Parts of a tensor: the second half of gradus/ops/view.h.
#include <gradus/ops/cat.h>
#include <gradus/ops/common.h>
#include <gradus/ops/copy.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/view.h>

#include <algorithm>

namespace gradus {
namespace {

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
  SplitBackward(int d, std::span<const Tensor> pieces, const Tensor& x)
      : dim(d), input_sizes(x.sizes()), dtype(x.dtype()), device(x.device()) {
    for (const Tensor& piece : pieces) lengths.push_back(piece.size(d));
  }
  const char* name() const override { return "SplitBackward"; }
  TensorList backward(const TensorList& g) override {
    TensorList pieces;
    for (size_t i = 0; i < g.size(); ++i) {
      Shape sizes = input_sizes;
      sizes[dim] = lengths[i];
      pieces.push_back(g[i].defined() ? g[i] : zeros(sizes, dtype, device));
    }
    return {cat(pieces, dim)};
  }
  int dim;
  Shape input_sizes;
  DType dtype;
  Device device;
  std::vector<int64_t> lengths;
};

// x[start : start + length * step : step]; the arguments were checked.
Tensor take(const Tensor& x, int dim, int64_t start, int64_t length, int64_t step) {
  Shape sizes = x.sizes(), strides = x.strides();
  const int64_t offset = x.storage_offset() + start * strides[dim];
  sizes[dim] = length;
  strides[dim] *= step;
  Tensor y = detail::make_view(x, sizes, strides, offset);
  if (wants_grad(x)) record<SliceBackward>(y, x, x.sizes(), dim, start, step);
  return y;
}

int checked_dim(const Tensor& x, int64_t dim, const char* op) {
  ops::check_defined(op, x);
  GRADUS_CHECK(x.dim() > 0, "E-DIM", op, ": cannot be applied to a 0-dim tensor");
  return wrap_dim(dim, x.dim(), op);
}

}  // namespace

Tensor detail::slice_backward(const Tensor& g, const Shape& sizes, int dim, int64_t start, int64_t step) {
  const MemoryFormat format = sizes.size() == 4 ? g.suggest_memory_format() : MemoryFormat::contiguous;
  Tensor y = zeros(sizes, {.dtype = g.dtype(), .device = g.device(), .memory_format = format});
  Shape strides = y.strides();
  strides[dim] *= step;
  ops::copy_into(make_view(y, g.sizes(), strides, start * y.strides()[dim]), g);
  if (wants_grad(g)) record<SliceBackwardBackward>(y, g, dim, start, g.sizes()[dim], step);
  return y;
}

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
  Tensor y = detail::make_view(x, sizes, strides, offset);
  if (wants_grad(x)) record<SelectBackward>(y, x, x.sizes(), d, i);
  return y;
}

Tensor slice(const Tensor& x, int64_t dim, int64_t start, int64_t end, int64_t step) {
  const int d = checked_dim(x, dim, "slice");
  GRADUS_CHECK(step > 0, "E-ARG", "slice: step must be positive, got ", step, hint("use flip()"));
  const int64_t size = x.sizes()[d];
  auto bound = [size](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size); };
  const int64_t first = bound(start), last = std::max(bound(end), first);
  const int64_t length = last == first ? 0 : (last - first - 1) / step + 1;
  return take(x, d, first, length, length > 1 ? step : 1);  // a stride of one element is free: no overflow
}

std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& lengths, int64_t dim) {
  const int d = checked_dim(x, dim, "split");
  int64_t total = 0;
  for (int64_t n : lengths) {
    GRADUS_CHECK(n >= 0, "E-SHAPE", "split: sizes must be non-negative, got ", n);
    GRADUS_CHECK(n <= x.sizes()[d] - total, "E-SHAPE", "split: split_sizes sum up to more than the ",
                 x.sizes()[d], " of the input tensor's dimension ", d);
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
  constexpr int64_t most = 1 << 20;  // there is no end to the pieces of nothing
  GRADUS_CHECK(size > 0 || chunks <= most, "E-ARG", "chunk: dimension ", d, " of shape ", x.sizes(),
               " is empty and would be cut into ", chunks, " empty pieces; the most is ", most);
  if (size == 0) return split(x, std::vector<int64_t>(static_cast<size_t>(chunks), 0), d);
  return split(x, (size - 1) / chunks + 1, d);
}

std::vector<Tensor> unbind(const Tensor& x, int64_t dim) {
  const int d = checked_dim(x, dim, "unbind");
  std::vector<Tensor> pieces = split(x, std::vector<int64_t>(static_cast<size_t>(x.sizes()[d]), 1), d);
  for (Tensor& piece : pieces) piece = squeeze(piece, d);
  return pieces;
}

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
