// Between devices: what copies promise about streams and the host, pinned memory, memory used by several
// streams. These document the methods of Tensor.
//
// A copy between the cpu and another device is queued on that device's current stream. Without non_blocking
// the host waits for it. With non_blocking it does not wait if the host's side is pinned memory: until the
// stream is synchronised (or an event behind the copy has passed) the target's contents are undefined and the
// source must not be changed. From or to pageable memory the host waits all the same, as CUDA does.
// x.to(cpu, non_blocking) gives a pinned tensor, so that it need not wait: PyTorch's rule, and its trap,
// since reading the tensor at once reads what was there before. copy_() with a conversion on the cpu does
// wait. Pinned memory that such a copy uses is not handed out again before the copy is done.
//
// A copy between two devices runs on the source's current stream, after what the target's current stream was
// given before, and later work of the target's current stream waits for it. The host never waits. Between a
// sim and a cuda device it goes through the host, which waits.
//
// x.pin_memory(device): a copy of x in page-locked memory, in x's memory order; x itself where it is pinned
// already. Pinned for all devices of that type; unless given, current_accelerator()'s. Throws E-DEVICE for an
// x off the cpu and for device cpu, else as current_accelerator(). Its gradient is x's. x.is_pinned(device):
// whether copies to devices of that type (unless given, to any) need not block. False off the cpu.
//
// x.record_stream(stream): to be called when work on `stream` uses x, whose memory was allocated on another
// stream: once the last tensor on the memory is gone it is not reused before that work is done. Throws
// E-DEVICE-MISMATCH for another device's stream. Memory of from_blob() is its owner's to keep.
#pragma once
#include <gradus/tensor/tensor.h>

namespace gradus::ops {

/// Counts one copy of `bytes`, by direction, on the device it belongs to.
void count_copy(Device to, Device from, size_t bytes);
/// Copies x into y on another device. Both are dense and laid out alike; no checks, no history, no version.
void transfer(const Tensor& y, const Tensor& x, bool non_blocking);
/// x on another device, without history.
Tensor transferred(const Tensor& x, Device device, bool non_blocking);

}  // namespace gradus::ops
