// Reading a value's bits as another type, on the host and in device code.
#pragma once
#include <gradus/base/macros.h>

namespace gradus {

/// std::bit_cast; that one is a host function to nvcc.
template <class To, class From>
GRADUS_HD constexpr To bit_cast(const From& from) {
  return __builtin_bit_cast(To, from);
}

}  // namespace gradus
