// Are the ranks' models alike? Internal to distributed/.
#pragma once
#include <gradus/nn/module.h>

namespace gradus::distributed {

/// Throws E-DDP on every rank if the ranks' models differ in a parameter or buffer (name, order, shape,
/// dtype, or whether it is trained), naming the first one and both ranks.
void check_same_model(const nn::Module& module);

}  // namespace gradus::distributed
