// How two ranks' elements become one. Internal to distributed/.
#pragma once
#include <gradus/base/dtype.h>
#include <gradus/distributed/backend.h>

namespace gradus::distributed {

/// Functions over `n` elements.
struct Reduction {
  void (*combine)(void* to, const void* a, const void* b, size_t n);
  void (*scale)(void* elements, int64_t n, int ranks);  ///< afterwards; nullptr: not needed
};

/// float16 and bfloat16 are added in float and rounded at each step. Throws E-DTYPE for bool, and for the
/// average of integers.
Reduction reduction_of(ReduceOp op, DType dtype);

}  // namespace gradus::distributed
