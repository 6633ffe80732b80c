// What the stand-ins for cuBLASLt and cuDNN share.
#pragma once
#include <cuda_on_host/machine.h>
#include <cuda_on_host/runtime.h>
#include <gradus/base/half.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <stdexcept>

namespace gradus::cuda_on_host {

/// The status that a test has asked for with fail_next(); 0 if none.
inline int injected_status(const char* function) {
  Machine& m = machine();
  const std::lock_guard lock(m.mutex);
  const auto at = m.injected.find(function);
  if (at == m.injected.end() || at->second.first == 0) return 0;
  --at->second.first;
  return at->second.second;
}

/// Stops the device, as a kernel that leaves its memory does, unless all these bytes are the device's.
inline void require_device_memory(int device, const void* data, int64_t bytes) {
  Machine& m = machine();
  const std::lock_guard lock(m.mutex);
  if (!m.holds(device, data, static_cast<size_t>(bytes))) throw std::runtime_error("illegal memory access");
}

/// An element type by its number, for reading and writing as double.
enum class Element { f16, bf16, f32, f64 };
inline int64_t size_of(Element type) { return type == Element::f64 ? 8 : type == Element::f32 ? 4 : 2; }

inline double load(Element type, const void* data, int64_t i) {
  switch (type) {
    case Element::f16:
      return static_cast<float>(static_cast<const Half*>(data)[i]);
    case Element::bf16:
      return static_cast<float>(static_cast<const BFloat16*>(data)[i]);
    case Element::f32:
      return static_cast<const float*>(data)[i];
    default:
      return static_cast<const double*>(data)[i];
  }
}
inline void store(Element type, void* data, int64_t i, double value) {
  switch (type) {
    case Element::f16:
      static_cast<Half*>(data)[i] = static_cast<Half>(static_cast<float>(value));
      break;
    case Element::bf16:
      static_cast<BFloat16*>(data)[i] = static_cast<BFloat16>(static_cast<float>(value));
      break;
    case Element::f32:
      static_cast<float*>(data)[i] = static_cast<float>(value);
      break;
    default:
      static_cast<double*>(data)[i] = value;
  }
}

/// Rounded to TF32: eight bits of exponent and eleven of mantissa.
inline double to_tf32(double value) {
  auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  bits += 0xfff + (bits >> 13 & 1);
  return std::bit_cast<float>(bits & ~0x1fffu);
}

}  // namespace gradus::cuda_on_host
