// The cpu as a device: memory is the host's, and every stream's work is done before the call returns.
#pragma once
#include <gradus/runtime/backend.h>

namespace gradus::runtime {

Backend& cpu_backend();

}  // namespace gradus::runtime
