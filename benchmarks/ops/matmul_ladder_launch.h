// How the .cu files beside this one launch a step.
#pragma once
#include <gradus/runtime/kernel_table.h>

#include <gradus/backends/cuda/kernel.cuh>

#include "ops/matmul_ladder.h"

namespace ladder_bench {

template <class Body>
bool add(const char* name, int capability = 0, bool only_capability = false) {
  using Element = std::remove_const_t<std::remove_pointer_t<decltype(Body::p.a)>>;
  return add({name, gradus::dtype_of<Element>(), capability, only_capability,
              [](const gradus::kernels::ladder::ProductArgs& args, const gradus::Stream& stream) {
                gradus::cuda::run(Body{decltype(Body::p)::of(args)}, stream, Body::kBlockSize);
              }});
}

}  // namespace ladder_bench
