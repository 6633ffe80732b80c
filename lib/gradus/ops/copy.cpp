#include "kernels/copy.cuh"

#include <gradus/ops/common.h>
#include <gradus/ops/copy.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/transfer.h>
#include <gradus/runtime/device_info.h>
#include <gradus/runtime/device_stats.h>

#include <array>

namespace gradus {
namespace {

constexpr auto kCopy =
    KernelTable<CopyArgs>("copy").host(kAllTypes, &kernels::copy_host).cuda<&kernels::copy_cuda>(kAllTypes);
constexpr auto kFill =
    KernelTable<FillArgs>("fill").host(kAllTypes, &kernels::fill_host).cuda<&kernels::fill_cuda>(kAllTypes);

// Of to(): sends the gradient back to where and what the input was.
struct ToBackward : Node {
  ToBackward(Device device, DType dtype) : input_device(device), input_dtype(dtype) {}
  const char* name() const override { return "ToBackward"; }
  TensorList backward(const TensorList& g) override { return {g[0].to(input_dtype).to(input_device)}; }
  Device input_device;
  DType input_dtype;
};
struct CloneBackward : Node {
  const char* name() const override { return "CloneBackward"; }
  TensorList backward(const TensorList& g) override { return {g[0]}; }
};

// Of copy_(): what y was made of gets zeros, the source its share.
struct CopyBackward : Node {
  explicit CopyBackward(const Tensor& source)
      : sizes(source.sizes()), device(source.device()), dtype(source.dtype()) {}
  const char* name() const override { return "CopyBackward"; }
  TensorList backward(const TensorList& g) override {
    return {wants(0) ? zeros_like(g[0]) : Tensor(),
            wants(1) ? sum_to_size(g[0], sizes).to(dtype).to(device) : Tensor()};
  }
  Shape sizes;
  Device device;
  DType dtype;
};

// The old values are gone, so what they were made of gets zeros.
struct OverwriteBackward : Node {
  const char* name() const override { return "OverwriteBackward"; }
  TensorList backward(const TensorList& g) override { return {zeros_like(g[0])}; }
};

// y = x on one device, converting and broadcasting.
void copy_within(const Tensor& y, const Tensor& x) {
  ops::count_copy(y.device(), x.device(), y.nbytes());
  ops::copy_into(y, x);
}

bool same_layout(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.sizes() == b.sizes() && a.is_dense() &&
         detail::has_strides(a.sizes(), a.strides(), b.strides());
}

// y = source, broadcast and converted, without history.
void copy_values(const Tensor& y, const Tensor& source, bool non_blocking) {
  NoGradGuard no_grad;
  const Tensor x = source.sizes() == y.sizes() ? source : source.expand(y.sizes());
  if (x.device() == y.device()) {
    copy_within(y, ops::separate_from(x, y));
  } else if (same_layout(y, x)) {
    ops::transfer(y, x, non_blocking);
  } else {  // the host converts at once, so the copy to it must be done
    const bool wait = !non_blocking || y.is_cpu();
    copy_within(y, source.to(y.device(), !wait).expand(y.sizes()));
  }
}

}  // namespace

void ops::copy_into(const Tensor& y, const Tensor& x) {
  launch(kCopy, y.dtype(), ops::stream_of(y), CopyArgs{x.arg(), y.arg()});
}

void ops::overwritten(Tensor y) {
  y.bump_version();
  if (wants_grad(y)) record<OverwriteBackward>(y, y);
}

Tensor to(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  Tensor y = empty_like(x, dtype);
  copy_within(y, x);
  if (wants_grad(x) && is_floating_point(dtype)) record<ToBackward>(y, x, x.device(), x.dtype());
  return y;
}

Tensor clone(const Tensor& x) {
  Tensor y = empty_like(x);
  copy_within(y, x);
  if (wants_grad(x)) record<CloneBackward>(y, x);
  return y;
}

Tensor Tensor::to(DType dtype) const { return gradus::to(*this, dtype); }
Tensor Tensor::clone() const { return gradus::clone(*this); }

Tensor Tensor::to(Device target, bool non_blocking) const {
  if (device() == target) return *this;
  Tensor y = ops::transferred(*this, target, non_blocking);
  if (wants_grad(*this)) record<ToBackward>(y, *this, device(), dtype());
  return y;
}
Tensor Tensor::cpu() const { return to(Device()); }
Tensor Tensor::cuda() const { return to(current_device(DeviceType::cuda)); }

Tensor Tensor::contiguous(MemoryFormat format) const {
  if (is_contiguous(format)) {
    // With one channel both orders are the same memory; the strides say which one is meant.
    if (format == MemoryFormat::contiguous || strides() == channels_last_strides(sizes())) return *this;
    Tensor y = detail::make_view(*this, sizes(), channels_last_strides(sizes()), storage_offset());
    if (wants_grad(*this)) record<CloneBackward>(y, *this);
    return y;
  }
  GRADUS_CHECK(format == MemoryFormat::contiguous || dim() == 4, "E-SHAPE",
               "contiguous: channels_last needs a 4-D tensor (N, C, H, W), got shape ", sizes(),
               hint("unsqueeze(0) a single image"));
  Tensor y = format == MemoryFormat::channels_last
                 ? empty_strided(sizes(), channels_last_strides(sizes()), dtype(), device())
                 : empty(sizes(), dtype(), device());
  copy_within(y, *this);
  if (wants_grad(*this)) record<CloneBackward>(y, *this);
  return y;
}

Tensor& Tensor::copy_(const Tensor& source, bool non_blocking) {
  if (is_same(source)) return *this;
  check_inplace(*this, "copy", {&source, 1});
  Intrusive<Node> node;  // from before the copy: it may overwrite what source is a view of
  if (is_floating_point() && wants_grad(*this, source)) {
    node = Intrusive<Node>(new CopyBackward(source));
    Recorder::connect(*node, std::array{*this, source});
  }
  copy_values(*this, source, non_blocking);
  bump_version();
  if (node) Recorder::own(std::move(node), *this, 0);
  return *this;
}

Tensor& Tensor::fill_(Scalar value) {
  check_inplace(*this, "fill");
  launch(kFill, dtype(), ops::stream_of(*this), FillArgs{arg(), value});
  ops::overwritten(*this);
  return *this;
}

Scalar Tensor::item() const {
  GRADUS_CHECK(numel() == 1, "E-SHAPE", "item: a Tensor with ", numel(),
               " elements cannot be converted to Scalar; its shape is ", sizes(),
               hint("reduce it first, for example with sum() or mean()"));
  Tensor host = *this;
  if (is_cpu()) {
    detail::count(detail::counters_of(device()).synchronizations);
  } else {
    NoGradGuard no_grad;
    host = cpu();
  }
  return visit_dtype(dtype(), [&]<class T>(TypeTag<T>) {
    return Scalar(static_cast<ComputeType<T>>(*static_cast<const T*>(host.raw_data())));
  });
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  NoGradGuard no_grad;
  if (is_cpu()) detail::count(detail::counters_of(device()).synchronizations);
  const Tensor host = cpu().to(dtype_of<T>()).contiguous();
  const T* data = host.data<T>();
  return std::vector<T>(data, data + host.numel());
}

template std::vector<float> Tensor::to_vector<float>() const;
template std::vector<double> Tensor::to_vector<double>() const;
template std::vector<int64_t> Tensor::to_vector<int64_t>() const;
template std::vector<int32_t> Tensor::to_vector<int32_t>() const;
template std::vector<uint8_t> Tensor::to_vector<uint8_t>() const;
template std::vector<bool> Tensor::to_vector<bool>() const;
template std::vector<Half> Tensor::to_vector<Half>() const;
template std::vector<BFloat16> Tensor::to_vector<BFloat16>() const;

}  // namespace gradus
