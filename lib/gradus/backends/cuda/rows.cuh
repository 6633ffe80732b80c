// What operations on rows share.
#pragma once
#include <gradus/runtime/tensor_arg.h>

#include <gradus/backends/cuda/kernel.cuh>
#include <kernels/blocks/teams.cuh>

namespace gradus::cuda {

/// Threads of a block for rows of `length` elements: more for rows that 256 cannot keep in registers.
inline int block_size_for(const kernels::Teams& teams, int64_t length) {
  return teams.lanes == 0 && length > int64_t{kBlockSize} * kernels::kHeld ? 2 * kBlockSize : kBlockSize;
}

/// Runs a body on rows.
template <class Body>
void run_rows(const Body& body, int64_t length, const Stream& stream) {
  run(body, stream, block_size_for(body.teams, length));
}

template <class T>
T* optional(const TensorArg& arg) {
  return arg.present() ? arg.data<T>() : nullptr;
}

}  // namespace gradus::cuda
