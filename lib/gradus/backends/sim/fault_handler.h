// What a program sees when host code touches device memory: not a bare crash but which tensor it was.
#pragma once
#include <gradus/runtime/tensor_arg.h>

#include <cstddef>
#include <cstdint>

namespace gradus::sim {

/// From now on a fault in [begin, begin + devices * bytes_per_device) prints a message to stderr before the
/// program ends as it would have; other faults go to the handler that was there before.
void install_fault_handler(uintptr_t begin, size_t bytes_per_device, int devices);

/// Remembers a tensor for that message: one whose address the host asked for, or that `operation` used last.
void remember_tensor(const TensorArg& tensor, const char* operation);

}  // namespace gradus::sim
