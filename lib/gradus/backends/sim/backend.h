// The simulated device as a backend. docs/simulated_device.md says what it models.
#pragma once
#include <gradus/runtime/backend.h>

namespace gradus::runtime {

Backend& sim_backend();

}  // namespace gradus::runtime
