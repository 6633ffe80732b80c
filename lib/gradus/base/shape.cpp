#include <gradus/base/shape.h>

#include <algorithm>
#include <limits>
#include <ostream>

namespace gradus {

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (int i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    detail::append(text, shape[i]);
  }
  return text + "]";
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << to_string(shape); }

Shape contiguous_strides(const Shape& sizes) {
  Shape strides = sizes;
  int64_t step = 1;
  for (int i = sizes.size() - 1; i >= 0; --i) {
    strides[i] = step;
    step *= std::max<int64_t>(sizes[i], 1);
  }
  return strides;
}

Shape channels_last_strides(const Shape& sizes) {
  if (sizes.size() != 4) return contiguous_strides(sizes);
  Shape strides = sizes;
  int64_t step = 1;
  for (int i : {1, 3, 2, 0}) {
    strides[i] = step;
    step *= std::max<int64_t>(sizes[i], 1);
  }
  return strides;
}

Shape broadcast_shapes(const Shape& a, const Shape& b, const char* op) {
  if (a == b) return a;
  const int n = std::max(a.size(), b.size());
  Shape out = Shape::filled(n, 1);
  for (int i = 0; i < n; ++i) {
    const int ia = a.size() - 1 - i, ib = b.size() - 1 - i;
    const int64_t sa = ia >= 0 ? a[ia] : 1, sb = ib >= 0 ? b[ib] : 1;
    GRADUS_CHECK(
        sa == sb || sa == 1 || sb == 1, "E-SHAPE", op, ": shapes ", a, " and ", b,
        " do not broadcast: sizes ", sa, " and ", sb, " at dimension ", n - 1 - i, " differ and neither is 1",
        hint("sizes are matched from the last dimension; use unsqueeze() or transpose() to line them up"));
    out[n - 1 - i] = sa == 1 ? sb : sa;
  }
  return out;
}

int wrap_dim(int64_t dim, int ndim, const char* op) {
  const int64_t n = std::max(ndim, 1);
  GRADUS_CHECK(dim >= -n && dim < n, "E-DIM", op, ": dimension out of range (expected to be in range of [",
               -n, ", ", n - 1, "], but got ", dim, ")");
  return static_cast<int>(dim < 0 ? dim + n : dim);
}

int64_t checked_bytes(const Shape& sizes, size_t element_size, const char* op) {
  int64_t bytes = static_cast<int64_t>(element_size);
  bool zero = false;
  for (int64_t s : sizes) {
    GRADUS_CHECK(s >= 0, "E-SHAPE", op, ": negative size ", s, " in shape ", sizes);
    zero = zero || s == 0;
    GRADUS_CHECK(s == 0 || bytes <= std::numeric_limits<int64_t>::max() / s, "E-SHAPE", op, ": shape ", sizes,
                 " overflows a 64-bit byte count");
    if (s != 0) bytes *= s;
  }
  return zero ? 0 : bytes;
}

}  // namespace gradus
