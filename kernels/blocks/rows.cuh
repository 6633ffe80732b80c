// A contiguous tensor seen as rows along one of its dimensions.
#pragma once
#include <gradus/base/macros.h>

#include <cstdint>

namespace gradus::kernels {

/// One row: element i lies at start + i * step.
struct Row {
  int64_t start, step;
  GRADUS_HD int64_t at(int64_t i) const { return start + i * step; }
};

/// The rows of a contiguous tensor of shape [outer, length, inner] along its middle dimension; count = outer
/// * inner. inner = 1: the rows of a matrix.
struct Rows {
  int64_t count, length, inner = 1;
  GRADUS_HD Row row(int64_t r) const { return {r / inner * length * inner + r % inner, inner}; }
};

}  // namespace gradus::kernels
