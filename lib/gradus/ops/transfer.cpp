#include <gradus/ops/common.h>
#include <gradus/ops/copy.h>
#include <gradus/ops/transfer.h>
#include <gradus/runtime/device_info.h>
#include <gradus/runtime/device_stats.h>

namespace gradus {
namespace {

struct PinMemoryBackward : Node {
  const char* name() const override { return "PinMemoryBackward"; }
  TensorList backward(const TensorList& g) override { return {g[0]}; }
};

void queue_copy(const Tensor& y, const Tensor& x, const Stream& stream) {
  runtime::backend(stream.device)
      .copy(y.raw_data(), y.device(), x.raw_data(), x.device(), y.nbytes(), stream);
}

// `host` is the side on the cpu.
void copy_with_host(const Tensor& y, const Tensor& x, const Tensor& host, const Stream& stream,
                    bool non_blocking) {
  queue_copy(y, x, stream);
  if (!non_blocking) return stream.synchronize();
  const runtime::Allocation& memory = host.impl()->storage->allocation();
  if (!host.is_pinned(stream.device)) {
    detail::count(detail::counters_of(stream.device).synchronizations);  // the copy has blocked
  } else if (runtime::is_pinned(memory)) {
    runtime::record_stream(memory, stream);  // or it would be reused while it is copied
  }
}

// Both sides are ordered: y may still be in use on its stream, and will be used there.
void copy_to_peer(const Tensor& y, const Tensor& x) {
  const Stream from = ops::stream_of(x), to = ops::stream_of(y);
  from.wait_stream(to);
  queue_copy(y, x, from);
  to.wait_stream(from);
}

}  // namespace

void ops::count_copy(Device to, Device from, size_t bytes) {
  auto& c = detail::counters_of(from.is_cpu() ? to : from);
  const auto n = static_cast<int64_t>(bytes);
  if (from.is_cpu() && !to.is_cpu()) {
    detail::count(c.copies_h2d), detail::count(c.bytes_h2d, n);
  } else if (to.is_cpu() && !from.is_cpu()) {
    detail::count(c.copies_d2h), detail::count(c.bytes_d2h, n);
  } else {
    detail::count(c.copies_d2d), detail::count(c.bytes_d2d, n);
  }
}

void ops::transfer(const Tensor& y, const Tensor& x, bool non_blocking) {
  if (!x.is_cpu() && !y.is_cpu() && x.device().type() != y.device().type())
    return transfer(y, transferred(x, Device(), false), false);
  count_copy(y.device(), x.device(), y.nbytes());
  if (y.numel() == 0) return;
  if (x.is_cpu()) return copy_with_host(y, x, x, stream_of(y), non_blocking);
  if (y.is_cpu()) return copy_with_host(y, x, y, stream_of(x), non_blocking);
  copy_to_peer(y, x);
}

Tensor ops::transferred(const Tensor& x, Device device, bool non_blocking) {
  NoGradGuard no_grad;
  const Tensor from = x.is_dense() ? x : x.contiguous();
  Tensor y = device.is_cpu() && non_blocking
                 ? detail::empty_pinned(from.sizes(), from.strides(), from.dtype(), x.device())
                 : empty_strided(from.sizes(), from.strides(), from.dtype(), device);
  transfer(y, from, non_blocking);
  return y;
}

bool Tensor::is_pinned(std::optional<Device> device) const {
  if (!is_cpu()) return false;
  for (const DeviceType type : {DeviceType::cuda, DeviceType::sim}) {
    if ((device && device->type() != type) || !is_available(type)) continue;
    if (runtime::find_backend(type)->is_pinned(self().storage->data(), self().storage->bytes())) return true;
  }
  return false;
}

Tensor Tensor::pin_memory(std::optional<Device> device) const {
  GRADUS_CHECK(is_cpu(), "E-DEVICE", "pin_memory: cannot pin '", this->device(),
               "' tensor, only dense CPU tensors can be pinned",
               hint("pin it before it is moved, or call .cpu() first"));
  const Device target = device ? *device : current_accelerator();
  GRADUS_CHECK(!target.is_cpu(), "E-DEVICE",
               "pin_memory: memory is pinned for copies to another device, got cpu",
               hint("leave the device out, or name a sim or cuda device"));
  if (is_pinned(target)) return *this;
  const Tensor from = is_dense() ? detach() : detach().contiguous();
  Tensor y = detail::empty_pinned(from.sizes(), from.strides(), from.dtype(), target);
  ops::count_copy(y.device(), from.device(), y.nbytes());
  ops::copy_into(y, from);
  if (wants_grad(*this)) record<PinMemoryBackward>(y, *this);
  return y;
}

void Tensor::record_stream(const Stream& stream) const {
  runtime::record_stream(self().storage->allocation(), stream);
}

}  // namespace gradus
