// The names of models saved from within DataParallel or DistributedDataParallel.
#pragma once
#include <gradus/tensor/state_dict.h>

#include <string_view>

namespace gradus::nn {

/// Takes `prefix` off the front of every name, so that what was saved from a wrapped model loads into a bare
/// one; true if it did. Only where all names have it, and once: of "module.module.fc.weight" one is left, and
/// a model with a layer of its own called "module" beside others keeps its names. (torch.nn.modules.utils'
/// function of this name also takes it off some of the names.)
bool consume_prefix_in_state_dict_if_present(StateDict& state, std::string_view prefix = "module.");

}  // namespace gradus::nn
