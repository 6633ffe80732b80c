// x[…] and x[…] = values. Numbers, slices and None make a view of x; then index tensors, if any, pick from or
// write to that view.
#include <gradus/ops/common.h>
#include <gradus/ops/copy.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/index.h>
#include <gradus/ops/picking.h>
#include <gradus/ops/view.h>

namespace gradus {
namespace {

struct DimIndex {
  int dim;
  Tensor index;  // int64
};
using DimIndices = SmallVector<DimIndex, 2>;

bool is_mask(const TensorIndex& i) {
  return i.kind() == TensorIndex::Kind::tensor && i.tensor().dtype() == kBool;
}

// Dimensions of x that an index uses up.
int consumed(const TensorIndex& i) {
  switch (i.kind()) {
    case TensorIndex::Kind::none:
    case TensorIndex::Kind::ellipsis:
      return 0;
    case TensorIndex::Kind::tensor:
      return is_mask(i) ? i.tensor().dim() : 1;
    default:
      return 1;
  }
}

void add_tensor_index(const Tensor& x, int dim, const Tensor& index, DimIndices& list) {
  ops::check_same_device("index", {{"input", x}, {"index", index}});
  if (index.dtype() != kBool) {
    GRADUS_CHECK(is_integral(index.dtype()), "E-DTYPE",
                 "index: tensors used as indices must be integers or bool, got ", to_string(index.dtype()));
    list.push_back({dim, index.to(kInt64)});
    return;
  }
  for (int d = 0; d < index.dim(); ++d)
    GRADUS_CHECK(index.sizes()[d] == x.sizes()[dim + d], "E-INDEX", "index: the shape of the mask ",
                 index.sizes(), " at index ", d, " does not match the shape of the indexed tensor ",
                 x.sizes(), " at index ", dim + d);
  const Tensor places = nonzero(index);
  for (int d = 0; d < index.dim(); ++d) list.push_back({dim + d, select(places, 1, d)});
}

// The view that all but the index tensors make of x, and those with the dimensions of it that they index.
Tensor apply_basic(const Tensor& x, std::span<const TensorIndex> indices, DimIndices& list) {
  int used = 0, ellipses = 0;
  for (const TensorIndex& i : indices) {
    used += consumed(i);
    ellipses += i.kind() == TensorIndex::Kind::ellipsis;
  }
  GRADUS_CHECK(used <= x.dim(), "E-INDEX", "index: too many indices for tensor of dimension ", x.dim(), ": ",
               used);
  GRADUS_CHECK(ellipses <= 1, "E-INDEX", "index: an index can only have a single ellipsis");
  Tensor view = x;
  int dim = 0;
  for (const TensorIndex& i : indices) {
    switch (i.kind()) {
      case TensorIndex::Kind::none:
        view = unsqueeze(view, dim++);
        break;
      case TensorIndex::Kind::ellipsis:
        dim += x.dim() - used;
        break;
      case TensorIndex::Kind::number:
        view = select(view, dim, i.number());
        break;
      case TensorIndex::Kind::slice:
        if (!i.slice().is_whole()) view = slice(view, dim, i.slice().start, i.slice().stop, i.slice().step);
        ++dim;
        break;
      case TensorIndex::Kind::tensor:
        GRADUS_CHECK(i.tensor().dtype() != kBool || i.tensor().dim() > 0, "E-INDEX",
                     "index: a 0-dim bool tensor is not supported as an index",
                     hint("use where() or masked_select()"));
        add_tensor_index(view, dim, i.tensor(), list);
        dim += consumed(i);
        break;
    }
  }
  return view;
}

// Several index tensors as one: the dimensions they index are brought side by side and flattened. Where they
// were side by side before, the picked elements stand there, else in front.
struct Flattened {
  Tensor x;        // of the permuted and flattened shape; a copy where that cannot be a view
  Shape order;     // permutation that brought the dimensions together
  Shape permuted;  // the sizes then
  int dim;         // the flattened dimension
  Tensor index;
};

Flattened flatten_indexed(const Tensor& view, const DimIndices& list) {
  bool adjacent = true;
  for (size_t i = 1; i < list.size(); ++i) adjacent = adjacent && list[i].dim == list[i - 1].dim + 1;
  Flattened flat;
  flat.dim = adjacent ? list[0].dim : 0;
  Shape broadcast;
  for (const DimIndex& i : list) broadcast = broadcast_shapes(broadcast, i.index.sizes(), "index");
  std::array<bool, kMaxDims> indexed{};
  int64_t product = 1;
  for (const DimIndex& i : list) {
    const int64_t size = view.sizes()[i.dim];
    indexed[static_cast<size_t>(i.dim)] = true;
    product *= size;
    flat.index = detail::linear_index(flat.index, expand(i.index, broadcast), size, i.dim, "index");
  }
  Shape sizes;
  for (int d = 0; d < view.dim(); ++d) {
    if (indexed[static_cast<size_t>(d)]) continue;
    flat.order.push_back(d);
    sizes.push_back(view.sizes()[d]);
  }
  for (size_t i = 0; i < list.size(); ++i) flat.order.insert(flat.dim + static_cast<int>(i), list[i].dim);
  sizes.insert(flat.dim, product);
  const Tensor moved = permute(view, flat.order);
  flat.permuted = moved.sizes();
  flat.x = reshape(moved, sizes);
  return flat;
}

// From the flattened shape back to the view's.
Tensor restore(const Tensor& x, const Flattened& flat) {
  Shape inverse = flat.order;
  for (int i = 0; i < flat.order.size(); ++i) inverse[static_cast<int>(flat.order[i])] = i;
  return permute(reshape(x, flat.permuted), inverse);
}

Flattened make_flat(const Tensor& view, const DimIndices& list) {
  if (list.size() == 1) return {view, {}, {}, list[0].dim, list[0].index};
  return flatten_indexed(view, list);
}

}  // namespace

Tensor index(const Tensor& x, std::span<const TensorIndex> indices) {
  DimIndices list;
  const Tensor view = apply_basic(x, indices, list);
  if (list.empty()) return view;
  const Flattened flat = make_flat(view, list);
  return detail::pick(flat.x, {"index", flat.dim, false, true}, flat.index);
}

Tensor& index_put_(Tensor& x, std::span<const TensorIndex> indices, const Tensor& given, bool accumulate) {
  DimIndices list;
  Tensor view = apply_basic(x, indices, list);
  if (list.empty()) {
    accumulate ? view.add_(given) : view.copy_(given);
    return x;
  }
  check_inplace(view, "index_put", {&given, 1});
  const Flattened flat = make_flat(view, list);
  const detail::Along along{"index_put", flat.dim, false, true};
  const Tensor values = expand(given.to(x.device()).to(x.dtype()),
                               detail::picked_sizes(flat.x.sizes(), along, flat.index.sizes()));
  if (wants_grad(x, values)) {
    const Tensor result = detail::put(flat.x, along, flat.index, values, accumulate);
    ops::assign(view, list.size() == 1 ? result : restore(result, flat), "index_put", {&given, 1});
    return x;
  }
  // What is read must not change while x is written, not even element by element.
  const auto apart = [&x](const Tensor& t) { return t.is_alias_of(x) ? t.clone() : t; };
  detail::put_(flat.x, along, apart(flat.index), apart(values), accumulate);
  if (!flat.x.is_alias_of(x)) ops::copy_into(view, restore(flat.x, flat));
  x.bump_version();
  return x;
}

Tensor Tensor::index(std::initializer_list<TensorIndex> indices) const {
  return gradus::index(*this, std::span(indices.begin(), indices.size()));
}
Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices, const Tensor& values,
                           bool accumulate) {
  return gradus::index_put_(*this, std::span(indices.begin(), indices.size()), values, accumulate);
}
Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices, Scalar value) {
  return index_put_(indices, scalar_tensor(value, {.dtype = dtype(), .device = device()}));
}

}  // namespace gradus
