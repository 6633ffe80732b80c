// The steps of the matmul ladder as the benchmark calls them. matmul_ladder.cu and matmul_ladder_90a.cu add
// them; builds without CUDA have none.
#pragma once
#include <gradus/base/dtype.h>
#include <gradus/runtime/stream.h>

#include "kernels/ladder/matmul/product.cuh"

namespace ladder_bench {

struct Step {
  const char* name;      ///< "1_naive"
  gradus::DType dtype;   ///< of A and B
  int capability;        ///< 80: what it needs at least
  bool only_capability;  ///< and no other
  void (*launch)(const gradus::kernels::ladder::ProductArgs& args, const gradus::Stream& stream);
};

/// Registers its cases. Called before main().
bool add(const Step& step);

}  // namespace ladder_bench
