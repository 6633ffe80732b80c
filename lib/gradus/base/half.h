// float16 and bfloat16 as storage types: conversion to and from float, nothing else.
// Arithmetic on them is done in float and rounded once, to nearest even, as the hardware does.
#pragma once
#include <gradus/base/bits.h>
#include <gradus/base/macros.h>

#include <cstdint>

// Does the compiler have instructions for the conversions? (clang 14 has the instructions but not the type.)
#if !defined(__CUDACC__) && defined(__F16C__) && defined(__FLT16_MAX__)
#define GRADUS_HAVE_FLOAT16
#endif

namespace gradus {

/// IEEE 754 binary16: 1 sign, 5 exponent, 10 fraction bits. Largest finite value 65504.
struct Half {
  uint16_t bits = 0;

  Half() = default;
#ifdef GRADUS_HAVE_FLOAT16
  explicit(false) Half(float value) : bits(bit_cast<uint16_t>(static_cast<_Float16>(value))) {}
  explicit(false) operator float() const { return static_cast<float>(bit_cast<_Float16>(bits)); }
#else
  GRADUS_HD explicit(false) Half(float value) : bits(from_float(value)) {}
  GRADUS_HD explicit(false) operator float() const { return to_float(bits); }
#endif

  // The conversions in integer arithmetic, for machines without the instructions, which a GPU has.
  static GRADUS_HD uint16_t from_float(float value) {
#ifdef __CUDA_ARCH__
    uint16_t half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
    return half;
#else
    const uint32_t x = bit_cast<uint32_t>(value);
    const uint32_t sign = (x >> 16) & 0x8000u;
    const uint32_t magnitude = x & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
    if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds past 65504
    if (magnitude < 0x38800000u) {  // subnormal: let float addition do the rounding
      const float rounded = bit_cast<float>(magnitude) + 0.5f;
      return static_cast<uint16_t>(sign | (bit_cast<uint32_t>(rounded) - 0x3f000000u));
    }
    const uint32_t odd = (magnitude >> 13) & 1u;
    return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
#endif
  }

  static GRADUS_HD float to_float(uint16_t half) {
#ifdef __CUDA_ARCH__
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
    return value;
#else
    const uint32_t sign = (half & 0x8000u) << 16;
    const uint32_t rest = (half & 0x7fffu) << 13;
    if ((half & 0x7c00u) == 0x7c00u) return bit_cast<float>(sign | 0x7f800000u | (rest & 0x7fffffu));
    if ((half & 0x7c00u) == 0) {  // zero or subnormal: value = fraction * 2^-24
      const float magnitude = static_cast<float>(half & 0x3ffu) * 5.9604644775390625e-8f;
      return bit_cast<float>(bit_cast<uint32_t>(magnitude) | sign);
    }
    return bit_cast<float>(sign | (rest + 0x38000000u));
#endif
  }
};

/// bfloat16: float32 with the low 16 fraction bits cut. Range of float32, 8 bits of precision.
struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;
  GRADUS_HD explicit(false) BFloat16(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
#else
    const uint32_t x = bit_cast<uint32_t>(value);
    const uint32_t rounded = (x + 0x7fffu + ((x >> 16) & 1u)) >> 16;
    bits = static_cast<uint16_t>(value != value ? ((x >> 16) | 0x40u) : rounded);  // keep NaN a NaN
#endif
  }
  GRADUS_HD explicit(false) operator float() const {
    return bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
};

static_assert(sizeof(Half) == 2 && sizeof(BFloat16) == 2);

}  // namespace gradus
