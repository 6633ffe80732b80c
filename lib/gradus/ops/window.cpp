#include <gradus/ops/window.h>

#include <limits>

namespace gradus {

std::string to_string(const Size2& s) { return str("(", s.h, ", ", s.w, ")"); }

int64_t ops::window_count(const char* op, int64_t size, int64_t kernel, int64_t stride, int64_t padding,
                          int64_t dilation, bool ceil_mode) {
  GRADUS_CHECK(kernel >= 1 && stride >= 1 && dilation >= 1 && padding >= 0, "E-ARG", op, ": kernel size ",
               kernel, ", stride ", stride, " and dilation ", dilation, " must be at least 1, padding ",
               padding, " at least 0");
  constexpr int64_t most = std::numeric_limits<int32_t>::max();  // products of two fit in 64 bits
  GRADUS_CHECK(kernel <= most && stride <= most && dilation <= most && padding <= most, "E-ARG", op,
               ": kernel size ", kernel, ", stride ", stride, ", dilation ", dilation, " and padding ",
               padding, " must be at most ", most);
  const int64_t reach = dilation * (kernel - 1) + 1;
  const int64_t room = size + 2 * padding - reach;
  GRADUS_CHECK(room >= 0, "E-SHAPE", op, ": kernel of size ", reach,
               " (with dilation) can't be greater than the input of size ", size, " with padding ", padding,
               hint("add padding, or use a smaller kernel"));
  int64_t count = room / stride + 1;
  if (ceil_mode && room % stride != 0 && count * stride < size + padding) ++count;
  return count;
}

}  // namespace gradus
