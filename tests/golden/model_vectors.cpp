#include "model_vectors.h"

#include <gradus/ops/factories.h>

#include <cmath>

namespace gradus::golden {

uint32_t hash(uint32_t i, uint32_t stream) {
  uint32_t h = i * 0x9E3779B1u + stream * 0x85EBCA77u + 1u;
  h = (h ^ h >> 16) * 0x85EBCA6Bu;
  h = (h ^ h >> 13) * 0xC2B2AE35u;
  return h ^ h >> 16;
}

Tensor signed_unit(const Shape& sizes, uint32_t stream, double scale) {
  constexpr int32_t kHalf = 1 << 23;
  std::vector<double> values(static_cast<size_t>(sizes.numel()));
  for (size_t i = 0; i < values.size(); ++i) {
    const auto top = static_cast<int32_t>(hash(static_cast<uint32_t>(i), stream) >> 8);
    values[i] = static_cast<double>(top - kHalf) / kHalf * scale;
  }
  return tensor(values, sizes);
}

double power_of_two_scale(int64_t fan_in) {
  return std::ldexp(1.0, std::ilogb(1 / std::sqrt(static_cast<double>(fan_in))));
}

Tensor images(int64_t count, int64_t side) {
  const Shape sizes{count, 1, side, side};
  std::vector<float> values(static_cast<size_t>(sizes.numel()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(hash(static_cast<uint32_t>(i), 1000) & 0xFF) / 255.0f;
  return tensor(values, sizes);
}

Tensor hashed_ints(const Shape& sizes, uint32_t stream, int64_t bound) {
  std::vector<int64_t> values(static_cast<size_t>(sizes.numel()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<int64_t>(hash(static_cast<uint32_t>(i), stream)) % bound;
  return tensor(values, sizes);
}

}  // namespace gradus::golden
