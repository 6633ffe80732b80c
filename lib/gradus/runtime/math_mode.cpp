#include <gradus/base/error.h>
#include <gradus/runtime/math_mode.h>

#include <algorithm>
#include <string>

namespace gradus {
namespace {

constexpr const char* kNames[] = {"highest", "high", "medium"};
std::atomic<MatmulPrecision> precision_in_force{MatmulPrecision::highest};

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

}  // namespace

void set_float32_matmul_precision(std::string_view precision) {
  const auto* found = std::find(std::begin(kNames), std::end(kNames), lower_case(precision));
  GRADUS_CHECK(found != std::end(kNames), "E-ARG", "set_float32_matmul_precision: '", precision,
               "' is not one of 'highest', 'high', or 'medium'",
               hint("TF32 is 'high'; it stays ", get_float32_matmul_precision()));
  precision_in_force = static_cast<MatmulPrecision>(found - std::begin(kNames));
}

const char* get_float32_matmul_precision() { return kNames[static_cast<int>(precision_in_force.load())]; }

MatmulPrecision runtime::float32_matmul_precision() { return precision_in_force; }

}  // namespace gradus
