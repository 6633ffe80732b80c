#include "kernels/cat.cuh"

#include <gradus/ops/arithmetic.h>
#include <gradus/ops/autocast.h>
#include <gradus/ops/cat.h>
#include <gradus/ops/clamp.h>
#include <gradus/ops/common.h>
#include <gradus/ops/copy.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/index.h>
#include <gradus/ops/unary.h>
#include <gradus/ops/view.h>

#include <algorithm>
#include <cstdlib>

namespace gradus {
namespace {

constexpr auto kCat =
    KernelTable<CatArgs>("cat").host(kAllTypes, &kernels::cat_host).cuda<&kernels::cat_cuda>(kAllTypes);

struct CatBackward : Node {
  CatBackward(int d, std::span<const Tensor> inputs) : dim(d) {
    for (const Tensor& x : inputs) lengths.push_back(x.size(d));
  }
  const char* name() const override { return "CatBackward"; }
  TensorList backward(const TensorList& g) override {
    TensorList parts;
    int64_t at = 0;
    for (size_t i = 0; i < lengths.size(); at += lengths[i++])
      parts.push_back(wants(i) ? narrow(g[0], dim, at, lengths[i]) : Tensor());
    return parts;
  }
  int dim;
  SmallVector<int64_t, 4> lengths;
};

struct PadBackward : Node {
  explicit PadBackward(const Shape& p) : back(p) {
    for (int64_t& n : back) n = -n;
  }
  const char* name() const override { return "PadBackward"; }
  TensorList backward(const TensorList& g) override { return {pad(g[0], back)}; }
  Shape back;
};

struct FlipBackward : Node {
  explicit FlipBackward(const Shape& d) : dims(d) {}
  const char* name() const override { return "FlipBackward"; }
  TensorList backward(const TensorList& g) override { return {flip(g[0], dims)}; }
  Shape dims;
};

// The inputs that count, in one dtype.
TensorList cat_inputs(std::span<const Tensor> tensors) {
  GRADUS_CHECK(!tensors.empty(), "E-ARG", "cat: expected a non-empty list of Tensors");
  ops::check_defined("cat", tensors[0], "tensors[0]");
  DType dtype = tensors[0].dtype();
  for (const Tensor& x : tensors) {
    ops::check_same_device("cat", {{"tensors[0]", tensors[0]}, {"another", x}});
    dtype = promote_types(dtype, x.dtype());
  }
  TensorList inputs;
  inputs.reserve(tensors.size());
  for (const Tensor& x : tensors)
    if (x.dim() != 1 || x.sizes()[0] != 0) inputs.push_back(x.to(dtype));
  if (inputs.empty()) inputs.push_back(tensors[0].to(dtype));
  return inputs;
}

Shape cat_sizes(std::span<const Tensor> inputs, int dim) {
  Shape sizes = inputs[0].sizes();
  for (size_t i = 1; i < inputs.size(); ++i) {
    Shape other = inputs[i].sizes();
    bool fits = other.size() == sizes.size();
    const int64_t length = fits ? other[dim] : 0;
    if (fits) other[dim] = sizes[dim];
    fits = fits && other == sizes;
    GRADUS_CHECK(fits, "E-SHAPE", "cat: Sizes of tensors must match except in dimension ", dim,
                 ". Tensor 0 has shape ", inputs[0].sizes(), ", tensor ", i, " has ", inputs[i].sizes());
    sizes[dim] += length;
  }
  return sizes;
}

MemoryFormat common_format(std::span<const Tensor> inputs) {
  for (const Tensor& x : inputs)
    if (x.suggest_memory_format() != MemoryFormat::channels_last) return MemoryFormat::contiguous;
  return MemoryFormat::channels_last;
}

// For each place of a padded dimension of size n, the element that stands there. Made on the device: no host
// waits for it.
Tensor border_index(int64_t n, int64_t before, int64_t after, PadMode mode, Device device) {
  const Tensor i = arange(-before, n + after, 1, {.device = device});
  if (mode == PadMode::replicate) return clamp(i, 0, n - 1);
  return (n - 1) - abs((n - 1) - abs(i));  // reflected at 0, then at n - 1
}

// Pads one dimension by picking elements.
Tensor pad_border(const Tensor& x, int dim, int64_t before, int64_t after, PadMode mode) {
  const int64_t n = x.sizes()[dim], limit = mode == PadMode::reflect ? n - 1 : n == 0 ? 0 : INT64_MAX;
  GRADUS_CHECK(before <= limit && after <= limit && n + before + after >= 0, "E-SHAPE", "pad: padding (",
               before, ", ", after, ") does not fit dimension ", dim, " of shape ", x.sizes(),
               hint("reflect needs a padding smaller than the dimension"));
  return index_select(x, dim, border_index(n, before, after, mode, x.device()));
}

void check_pads(const Tensor& x, const Shape& pads) {
  ops::check_defined("pad", x);
  GRADUS_CHECK(pads.size() % 2 == 0 && pads.size() / 2 <= x.dim(), "E-SHAPE",
               "pad: expected two numbers for each of at most ", x.dim(), " dimensions, got ", pads);
}

}  // namespace

Tensor cat(std::span<const Tensor> tensors, int64_t dim) {
  const TensorList inputs = cat_inputs(tensors);
  GRADUS_CHECK(inputs[0].dim() > 0, "E-SHAPE", "cat: zero-dimensional tensors cannot be concatenated",
               hint("use stack()"));
  const int d = wrap_dim(dim, inputs[0].dim(), "cat");
  Tensor y = empty(
      cat_sizes(inputs, d),
      {.dtype = inputs[0].dtype(), .device = inputs[0].device(), .memory_format = common_format(inputs)});
  CatArgs args{{}, y.arg(), d, 0};
  for (size_t i = 0; i < inputs.size();) {
    int64_t length = 0;
    for (args.x.count = 0; i < inputs.size() && args.x.count < TensorListArg::kCapacity; ++i) {
      args.x.push_back(inputs[i].arg());
      length += inputs[i].sizes()[d];
    }
    launch(kCat, y.dtype(), ops::stream_of(y), args);
    args.offset += length;
  }
  const std::span<const Tensor> all = inputs;
  if (wants_grad(all)) record<CatBackward>(std::span(&y, 1), all, d, all);
  return y;
}
Tensor cat(std::initializer_list<Tensor> tensors, int64_t dim) {
  return cat(std::span(tensors.begin(), tensors.size()), dim);
}

// [snippet stack]
Tensor stack(std::span<const Tensor> tensors, int64_t dim) {
  GRADUS_CHECK(!tensors.empty(), "E-ARG", "stack: expected a non-empty list of Tensors");
  TensorList rows;
  rows.reserve(tensors.size());
  for (const Tensor& x : tensors) {
    ops::check_defined("stack", x, "each entry");
    GRADUS_CHECK(x.sizes() == tensors[0].sizes(), "E-SHAPE",
                 "stack: expects each tensor to be equal size, but got ", tensors[0].sizes(),
                 " at entry 0 and ", x.sizes(), " at entry ", &x - tensors.data());
    rows.push_back(unsqueeze(x, dim));
  }
  return cat(rows, wrap_dim(dim, tensors[0].dim() + 1, "stack"));
}
// [/snippet stack]
Tensor stack(std::initializer_list<Tensor> tensors, int64_t dim) {
  return stack(std::span(tensors.begin(), tensors.size()), dim);
}

Tensor pad(const Tensor& x, const Shape& pads, Scalar value) {
  check_pads(x, pads);
  Shape sizes = x.sizes(), inner_sizes = x.sizes();
  for (int i = 0; i < pads.size() / 2; ++i) {
    const int d = x.dim() - 1 - i;
    const int64_t before = pads[2 * i], after = pads[2 * i + 1];
    sizes[d] += before + after;
    GRADUS_CHECK(sizes[d] >= 0, "E-SHAPE", "pad: the input size ", x.sizes()[d], ", plus negative padding ",
                 before, " and ", after, ", resulted in a negative output size at dimension ", d);
    inner_sizes[d] =
        std::max<int64_t>(0, x.sizes()[d] + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0));
  }
  Tensor y =
      empty(sizes, {.dtype = x.dtype(), .device = x.device(), .memory_format = x.suggest_memory_format()});
  y.fill_(value);
  int64_t from = x.storage_offset(), to = 0;
  for (int i = 0; i < pads.size() / 2; ++i) {
    const int d = x.dim() - 1 - i;
    (pads[2 * i] > 0 ? to : from) += std::abs(pads[2 * i]) * (pads[2 * i] > 0 ? y : x).strides()[d];
  }
  if (inner_sizes.numel() > 0)
    ops::copy_into(detail::make_view(y, inner_sizes, y.strides(), to),
                   detail::make_view(x, inner_sizes, x.strides(), from));
  if (wants_grad(x)) record<PadBackward>(y, x, pads);
  return y;
}

Tensor pad(const Tensor& x, const Shape& pads, PadMode mode) {
  if (mode == PadMode::constant) return pad(x, pads);
  if (const auto cast = ops::autocast(ops::kFloat32OnCpu, x)) return pad(cast(x), pads, mode);
  check_pads(x, pads);
  Tensor y = x;
  for (int i = 0; i < pads.size() / 2; ++i)
    y = pad_border(y, x.dim() - 1 - i, pads[2 * i], pads[2 * i + 1], mode);
  return y;
}

Tensor flip(const Tensor& x, const Shape& dims) {
  ops::check_defined("flip", x);
  Tensor y = x;
  {
    NoGradGuard no_grad;
    for (int64_t dim : dims) {
      const int d = wrap_dim(dim, x.dim(), "flip");
      if (x.dim() == 0) continue;
      y = index_select(y, d, arange(x.sizes()[d] - 1, -1, -1, {.device = x.device()}));
    }
  }
  if (y.is_same(x)) return x.clone();
  if (wants_grad(x)) record<FlipBackward>(y, x, dims);
  return y;
}

Tensor repeat(const Tensor& x, const Shape& repeats) {
  ops::check_defined("repeat", x);
  const int added = repeats.size() - x.dim();
  GRADUS_CHECK(added >= 0, "E-SHAPE", "repeat: Number of dimensions of repeat dims ", repeats.size(),
               " can not be smaller than number of dimensions of tensor ", x.dim());
  Tensor y = x;
  for (int d = 0; d < added; ++d) y = unsqueeze(y, 0);
  for (int d = 0; d < repeats.size(); ++d) {
    GRADUS_CHECK(repeats[d] >= 0, "E-ARG", "repeat: repeats must not be negative, got ", repeats);
    if (repeats[d] == 1) continue;
    Shape wide = y.sizes(), flat = y.sizes();
    wide.insert(d, repeats[d]);
    flat[d] *= repeats[d];
    y = reshape(expand(unsqueeze(y, d), wide), flat);
  }
  return y.is_alias_of(x) ? y.clone() : y;
}

}  // namespace gradus
