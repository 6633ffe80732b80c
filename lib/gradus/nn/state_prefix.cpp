#include <gradus/nn/state_prefix.h>

#include <algorithm>

namespace gradus::nn {

bool consume_prefix_in_state_dict_if_present(StateDict& state, std::string_view prefix) {
  const auto has_it = [&](const StateDict::Entry& entry) { return entry.first.starts_with(prefix); };
  if (state.empty() || !std::all_of(state.begin(), state.end(), has_it)) return false;
  StateDict bare;
  for (const auto& [name, tensor] : state) bare.add(name.substr(prefix.size()), tensor);
  state = std::move(bare);
  return true;
}

}  // namespace gradus::nn
