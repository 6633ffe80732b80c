#include <gradus/base/dtype.h>

#include <ostream>

namespace gradus {
namespace {

// bool < uint8 < int32 < int64 < the floating types, in the order of the enum.
int rank(DType d) { return d == DType::boolean ? -1 : static_cast<int>(d); }

}  // namespace

std::ostream& operator<<(std::ostream& out, DType d) { return out << to_string(d); }

DType promote_types(DType a, DType b) {
  if (a == b) return a;
  const DType high = rank(a) > rank(b) ? a : b;
  const DType low = high == a ? b : a;
  if (high == DType::bfloat16 && low == DType::float16) return DType::float32;
  return high;
}

std::string to_string(DTypeSet set) {
  std::string text;
  for (int d = 0; d < kDTypeCount; ++d) {
    if (!set.has(static_cast<DType>(d))) continue;
    if (!text.empty()) text += ", ";
    text += to_string(static_cast<DType>(d));
  }
  return text;
}

void detail::refuse_visit(DType d, DTypeSet set) {
  GRADUS_FAIL("E-INTERNAL", "internal: visit_dtype on dtype ", static_cast<int>(d), ", which is not in {",
              to_string(set), "}");
}

}  // namespace gradus
