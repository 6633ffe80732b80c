// Where the elements of strided operands lie, for bodies in which a thread has elements of its own: 32-bit
// numbers and no division, for a GPU is slow at both 64-bit ones and dividing.
#pragma once
#include <gradus/base/macros.h>

#include <bit>

#include "kernels/elementwise.cuh"

namespace gradus::kernels {

/// Divides numbers below 2^31 by one known at launch, with a multiplication and a shift: the quotient of n is
/// the whole part of n m / 2^(32 + shift) with m = 2^(32 + shift) / d rounded up. m has 33 bits; the highest,
/// which is 1, is left out and added as n.
class Divisor {
 public:
  Divisor() = default;
  /// 0 < d < 2^31
  explicit Divisor(uint32_t d) : d_(d), shift_(static_cast<uint32_t>(std::bit_width(d - 1))) {
    const uint64_t above = (uint64_t{1} << shift_) - d;
    multiplier_ = static_cast<uint32_t>((above << 32) / d + 1);
  }
  GRADUS_HD uint32_t divide(uint32_t n) const {
    return (static_cast<uint32_t>(uint64_t{n} * multiplier_ >> 32) + n) >> shift_;
  }
  GRADUS_HD uint32_t value() const { return d_; }

 private:
  uint32_t d_, multiplier_, shift_;
};

/// Offsets stay below this, in elements.
inline constexpr int64_t kMaxOffset = int64_t{1} << 31;

/// `count` elements, counted with the innermost dimension fastest, and where each lies in N operands.
template <int N>
struct Nest {
  uint32_t count;
  int ndim;  // at least 1
  Divisor sizes[kMaxDims];
  uint32_t strides[kMaxDims][N];

  Nest() = default;
  /// Of the first N operands of a loop that fits() and is not empty.
  template <int M>
  explicit Nest(const elementwise::LoopNest<M>& loop) : count(1), ndim(loop.ndim) {
    static_assert(N <= M + 1);
    for (int d = 0; d < ndim; ++d) {
      sizes[d] = Divisor(static_cast<uint32_t>(loop.sizes[d]));
      count *= sizes[d].value();
      for (int k = 0; k < N; ++k) strides[d][k] = static_cast<uint32_t>(loop.strides[d][k]);
    }
  }

  /// at[u][k]: the offset of element i[u] in operand k, in elements.
  template <int U>
  GRADUS_HD void locate(const uint32_t (&i)[U], uint32_t (&at)[U][N]) const {
    uint32_t rest[U];
    GRADUS_UNROLL
    for (int u = 0; u < U; ++u) {
      rest[u] = i[u];
      GRADUS_UNROLL
      for (int k = 0; k < N; ++k) at[u][k] = 0;
    }
    GRADUS_NO_UNROLL
    for (int d = ndim - 1; d > 0; --d) {
      GRADUS_UNROLL
      for (int u = 0; u < U; ++u) {
        const uint32_t outer = sizes[d].divide(rest[u]), inner = rest[u] - outer * sizes[d].value();
        rest[u] = outer;
        GRADUS_UNROLL
        for (int k = 0; k < N; ++k) at[u][k] += inner * strides[d][k];
      }
    }
    GRADUS_UNROLL
    for (int u = 0; u < U; ++u) {
      GRADUS_UNROLL
      for (int k = 0; k < N; ++k) at[u][k] += rest[u] * strides[0][k];
    }
  }
};

/// Are there fewer than `limit` elements, and all offsets below it?
template <int N>
bool fits(const elementwise::LoopNest<N>& loop, int64_t limit = kMaxOffset) {
  int64_t count = 1, last[N + 1] = {};
  for (int d = 0; d < loop.ndim; ++d) {
    count *= loop.sizes[d];
    for (int k = 0; k <= N; ++k) last[k] += (loop.sizes[d] - 1) * loop.strides[d][k];
  }
  bool fits = count < limit;
  for (const int64_t offset : last) fits = fits && offset < limit;
  return fits;
}

/// Calls part(loop, start) for parts of the loop that fit(); start[k] is where a part begins in operand k.
template <int N, class F>
void for_each_part(const elementwise::LoopNest<N>& loop, int64_t limit, const F& part,
                   const int64_t* start = std::array<int64_t, N + 1>{}.data()) {
  if (fits(loop, limit)) return part(loop, start);
  // In two along the dimension that reaches farthest, at a multiple of 16 elements where there are as many:
  // vectors that fit the whole then fit the parts.
  int cut = 0;
  int64_t farthest = 0;
  for (int d = 0; d < loop.ndim; ++d) {
    if (loop.sizes[d] == 1) continue;
    const int64_t reach = loop.sizes[d] * *std::max_element(loop.strides[d], loop.strides[d] + N + 1);
    if (reach > farthest) farthest = reach, cut = d;
  }
  auto first = loop, second = loop;
  int64_t half = loop.sizes[cut] / 2;
  if (half >= 16) half -= half % 16;
  first.sizes[cut] = half;
  second.sizes[cut] -= half;
  int64_t middle[N + 1];
  for (int k = 0; k <= N; ++k) middle[k] = start[k] + half * loop.strides[cut][k];
  for_each_part(first, limit, part, start);
  for_each_part(second, limit, part, middle);
}

}  // namespace gradus::kernels
