// What dynamic loss scaling asks of the gradients; users call gradus::amp.
#pragma once
#include <gradus/tensor/tensor.h>

#include <vector>

namespace gradus {

/// Multiplies each gradient by inv_scale, in place, and sets found_inf to 1 where an element of one was
/// infinite or NaN (it is not set to 0 otherwise); as torch._amp_foreach_non_finite_check_and_unscale_.
/// Gradients: floating point and dense, all on one device; inv_scale, found_inf: float32 of one element
/// there, so that nothing waits for the device. Throws E-DTYPE, E-DEVICE, E-SHAPE, E-LAYOUT.
void unscale_(const std::vector<Tensor>& grads, const Tensor& found_inf, const Tensor& inv_scale);

}  // namespace gradus
