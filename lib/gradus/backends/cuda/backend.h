// NVIDIA GPUs.
#pragma once
#include <gradus/runtime/backend.h>

namespace gradus::runtime {

Backend& cuda_backend();

}  // namespace gradus::runtime
