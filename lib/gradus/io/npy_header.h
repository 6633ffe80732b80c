// The header of a .npy file: a Python dictionary as text. Internal to io/.
#pragma once
#include <gradus/base/dtype.h>
#include <gradus/base/shape.h>

#include <string>
#include <string_view>

namespace gradus::detail {

struct NpyHeader {
  DType dtype = DType::float32;
  bool fortran_order = false;
  Shape sizes;
};

/// Accepts what numpy's reader accepts: keys in any order, any spaces, no trailing comma or newline.
/// Throws E-FORMAT, naming `path`, for anything else.
NpyHeader parse_npy_header(std::string_view text, const std::string& path);

/// The dictionary as numpy writes it; throws E-DTYPE for bfloat16.
std::string format_npy_header(const NpyHeader& header);

}  // namespace gradus::detail
