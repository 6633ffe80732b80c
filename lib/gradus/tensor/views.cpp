#include <gradus/runtime/device_info.h>
#include <gradus/runtime/pinned.h>
#include <gradus/tensor/grad_mode.h>
#include <gradus/tensor/node.h>
#include <gradus/tensor/views.h>

#include <algorithm>
#include <array>

namespace gradus {
namespace detail {

void fail_undefined(const char* accessor) {
  GRADUS_FAIL(
      "E-UNDEFINED", accessor, ": expected a tensor, got an undefined one",
      hint("a Tensor{} holds nothing, nor does one that was moved from, nor .grad() before backward(); "
           "defined() tells"));
}

// A dimension of size 1 may have any stride.
bool has_strides(const Shape& sizes, const Shape& strides, const Shape& wanted) {
  for (int i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return true;
    if (sizes[i] != 1 && strides[i] != wanted[i]) return false;
  }
  return true;
}

// In any order, and without overlap.
static bool fill_without_gaps(const Shape& sizes, const Shape& strides) {
  std::array<int, kMaxDims>
      order;  // the dimensions by stride (std::sort on 8 elements: g++ 12 warns wrongly)
  int n = 0;
  for (int i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return true;
    if (sizes[i] == 1) continue;
    int at = n++;
    for (; at > 0 && strides[order[at - 1]] > strides[i]; --at) order[at] = order[at - 1];
    order[at] = i;
  }
  int64_t step = 1;
  for (int i = 0; i < n; ++i) {
    if (strides[order[i]] != step) return false;
    step *= sizes[order[i]];
  }
  return true;
}

static Tensor make_tensor(Intrusive<Storage> storage, const Shape& sizes, const Shape& strides,
                          int64_t offset, DType dtype, bool contiguous) {
  Intrusive<TensorImpl> impl(new TensorImpl);
  impl->storage = std::move(storage);
  impl->sizes = sizes;
  impl->strides = strides;
  impl->offset = offset;
  impl->dtype = dtype;
  impl->contiguous = contiguous;
  impl->inference = inference_enabled;
  return Tensor(std::move(impl));
}

Tensor make_view(const Tensor& base, const Shape& sizes, const Shape& strides, int64_t offset) {
  Tensor view = make_tensor(base.impl()->storage, sizes, strides, offset, base.dtype(),
                            has_strides(sizes, strides, contiguous_strides(sizes)));
  auto* impl = view.impl();
  impl->base = base.impl()->base ? base.impl()->base : base.handle();
  impl->view_version = base.version();
  impl->inference = impl->inference || base.impl()->inference;
  return view;
}

}  // namespace detail

Tensor empty(const Shape& sizes, DType dtype, Device device) {
  const int64_t bytes = checked_bytes(sizes, element_size(dtype), "empty");
  return detail::make_tensor(Intrusive<Storage>(new Storage(static_cast<size_t>(bytes), device)), sizes,
                             contiguous_strides(sizes), 0, dtype, true);
}

namespace detail {
static Tensor empty_pinned(const Shape& sizes, DType dtype, const TensorOptions& options) {
  GRADUS_CHECK(options.device.is_cpu(), "E-DEVICE",
               "empty: only dense CPU tensors can be pinned, the device is ", options.device,
               hint("leave out the device or pin_memory"));
  checked_bytes(sizes, element_size(dtype), "empty");
  const bool channels_last = options.memory_format == MemoryFormat::channels_last;
  return empty_pinned(sizes, channels_last ? channels_last_strides(sizes) : contiguous_strides(sizes), dtype,
                      current_accelerator());
}
}  // namespace detail

Tensor empty(const Shape& sizes, const TensorOptions& options) {
  const DType dtype = options.dtype.value_or(DType::float32);
  const bool channels_last = options.memory_format == MemoryFormat::channels_last;
  Tensor t = options.pin_memory ? detail::empty_pinned(sizes, dtype, options)
             : channels_last    ? empty_strided(sizes, channels_last_strides(sizes), dtype, options.device)
                                : empty(sizes, dtype, options.device);
  if (options.requires_grad) t.requires_grad_();
  return t;
}

namespace detail {

// `allocate(bytes)` gives the storage.
template <class F>
static Tensor make_dense(const Shape& sizes, const Shape& strides, DType dtype, const F& allocate) {
  const int64_t bytes = checked_bytes(sizes, element_size(dtype), "empty");
  GRADUS_CHECK(strides.size() == sizes.size() && fill_without_gaps(sizes, strides), "E-STRIDE",
               "empty_strided: strides ", strides, " do not fill the shape ", sizes,
               " without gaps or overlap");
  return make_tensor(Intrusive<Storage>(allocate(static_cast<size_t>(bytes))), sizes, strides, 0, dtype,
                     has_strides(sizes, strides, contiguous_strides(sizes)));
}

}  // namespace detail

Tensor empty_strided(const Shape& sizes, const Shape& strides, DType dtype, Device device) {
  return detail::make_dense(sizes, strides, dtype, [&](size_t bytes) { return new Storage(bytes, device); });
}

Tensor detail::empty_pinned(const Shape& sizes, const Shape& strides, DType dtype, Device target) {
  return make_dense(sizes, strides, dtype, [&](size_t bytes) {
    return new Storage(runtime::allocate_pinned(bytes, target), bytes, Device());
  });
}

Tensor empty_like(const Tensor& like, DType dtype) {
  const bool row_major = like.is_contiguous() && like.suggest_memory_format() == MemoryFormat::contiguous;
  if (row_major || !like.is_dense()) return empty(like.sizes(), dtype, like.device());
  return empty_strided(like.sizes(), like.strides(), dtype, like.device());
}
Tensor empty_like(const Tensor& like) { return empty_like(like, like.dtype()); }

Tensor from_blob(void* data, const Shape& sizes, DType dtype, std::function<void(void*)> deleter) {
  const int64_t bytes = checked_bytes(sizes, element_size(dtype), "from_blob");
  GRADUS_CHECK(data || bytes == 0, "E-ARG", "from_blob: the address is null, for ", bytes, " bytes");
  return detail::make_tensor(
      Intrusive<Storage>(new Storage(data, static_cast<size_t>(bytes), Device(), std::move(deleter))), sizes,
      contiguous_strides(sizes), 0, dtype, true);
}

bool Tensor::is_contiguous(MemoryFormat format) const {
  if (format == MemoryFormat::contiguous) return self().contiguous;
  return dim() == 4 && detail::has_strides(sizes(), strides(), channels_last_strides(sizes()));
}

bool Tensor::is_dense() const { return self().contiguous || detail::fill_without_gaps(sizes(), strides()); }

// Where C = 1 or H = W = 1 both orders are the same memory, and the strides tell which one was asked for.
MemoryFormat Tensor::suggest_memory_format() const {
  const bool channels_last =
      dim() == 4 && strides() == channels_last_strides(sizes()) && strides() != contiguous_strides(sizes());
  return channels_last ? MemoryFormat::channels_last : MemoryFormat::contiguous;
}

Tensor Tensor::detach() const {
  Tensor t =
      detail::make_tensor(self().storage, sizes(), strides(), self().offset, dtype(), self().contiguous);
  t.impl()->inference = self().inference;
  return t;
}

}  // namespace gradus
