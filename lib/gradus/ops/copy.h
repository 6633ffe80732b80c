// Copies: to another device, dtype or memory order. These document the methods of Tensor.
//
// x.to(device, non_blocking), x.to(dtype), x.cpu(), x.cuda(), x.contiguous(format) return x itself where
// nothing changes, else a new tensor; x.clone() always copies. All keep the memory order of a dense x, save
// contiguous(), which gives the order asked for (channels_last: x must be 4-D, else E-SHAPE). Gradients are
// sent back as they came: on x's device, in x's dtype. A conversion to an integer or bool type has no
// gradient; floating point numbers are cut towards zero, those out of range saturate and NaN gives 0.
//
// y.copy_(source, non_blocking): source broadcasts to y's shape (else E-SHAPE) and is converted to its dtype
// and device. y.fill_(value) converts the number likewise. What y was
// made of gets zeros as its gradient, the source its share of y's.
//
// Copies between devices, non_blocking and pinned memory: transfer.h.
#pragma once
#include <gradus/tensor/tensor.h>

namespace gradus {

/// x.to(dtype)
Tensor to(const Tensor& x, DType dtype);
/// x.clone()
Tensor clone(const Tensor& x);

namespace ops {
/// Writes x, broadcast and converted, into y on the same device. No checks, no history, no version, and not
/// counted as a copy: part of another operation.
void copy_into(const Tensor& y, const Tensor& x);
/// To be called after y was overwritten with values that depend on no tensor: bumps its version, and where a
/// gradient is wanted, what y was made of gets zeros.
void overwritten(Tensor y);
}  // namespace ops

}  // namespace gradus
