// exp, log, tanh, erf and their like for kernels: one definition for the host and for device code.
//
// The float overloads use + - * / fma sqrt and integer operations only, each of which IEEE 754 rounds in one
// way, so every device gives the same bits. They have no branch: loops over them become vector code without
// -ffast-math. NaN, infinities, signed zeros, subnormals, overflow and underflow come out as IEEE 754 asks.
// The error bounds given here are checked over all floats by tests/base/math_test.cpp.
// The double overloads call the platform's functions: double is for tests, not for speed.
#pragma once
#include <gradus/base/bits.h>
#include <gradus/base/macros.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace gradus::math {

/// x < 0. Of an unsigned type it is false without a comparison, of which nvcc warns.
template <class T>
GRADUS_HD constexpr bool is_negative(T x) {
  if constexpr (std::is_unsigned_v<T>)
    return false;
  else
    return x < T{0};
}

namespace detail {

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// c ? a : b in integer operations. gcc turns ?: on floats into jumps as often as not, and then the loop
/// stays scalar.
GRADUS_HD GRADUS_INLINE float select(bool c, float a, float b) {
  const uint32_t mask = 0u - static_cast<uint32_t>(c);
  return bit_cast<float>((bit_cast<uint32_t>(a) & mask) | (bit_cast<uint32_t>(b) & ~mask));
}
GRADUS_HD inline double select(bool c, double a, double b) {
  const uint64_t mask = 0u - static_cast<uint64_t>(c);
  return bit_cast<double>((bit_cast<uint64_t>(a) & mask) | (bit_cast<uint64_t>(b) & ~mask));
}

/// The same by the lowest bit of n, and -a where that is set. Without a bool: gcc 12 has no vector code to
/// make one of a bit.
GRADUS_HD inline double select_odd(uint32_t n, double a, double b) {
  const uint64_t mask = uint64_t{0} - (n & 1u);
  return bit_cast<double>((bit_cast<uint64_t>(a) & mask) | (bit_cast<uint64_t>(b) & ~mask));
}
GRADUS_HD inline double negate_odd(uint32_t n, double a) {
  return bit_cast<double>(bit_cast<uint64_t>(a) ^ static_cast<uint64_t>(n) << 63);
}

/// 2^n for n in [-126, 127]. Unsigned, so that the garbage that NaN leaves in n is no undefined behaviour.
GRADUS_HD GRADUS_INLINE float power_of_two(uint32_t n) { return bit_cast<float>((n + 127u) << 23); }

// The last steps of the polynomials below: c0 + c1 x + c2 x^2 + …, coefficients given from the highest down.
template <class T>
GRADUS_HD T horner(T, T c) {
  return c;
}
template <class T, class... Rest>
GRADUS_HD T horner(T x, T c0, T c1, Rest... rest) {
  return horner(x, std::fma(c0, x, c1), rest...);
}

}  // namespace detail

GRADUS_HD GRADUS_INLINE float sqrt(float x) { return std::sqrt(x); }
GRADUS_HD inline double sqrt(double x) { return std::sqrt(x); }
/// 1 / sqrt(x); at most 1.5 ulp.
GRADUS_HD GRADUS_INLINE float rsqrt(float x) { return 1.0f / std::sqrt(x); }
GRADUS_HD inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }

/// e^x; at most 1 ulp.
GRADUS_HD GRADUS_INLINE float exp(float x) {
  constexpr float shift = 0x1.8p23f;  // adding it rounds to an integer, which then sits in the low bits
  float c = detail::select(x > 89.0f, 89.0f, x);  // beyond these the result is inf or 0; NaN passes both
  c = detail::select(c < -104.0f, -104.0f, c);
  const float shifted = std::fma(c, 0x1.715476p+0f, shift);  // 1 / ln 2
  const uint32_t n = bit_cast<uint32_t>(shifted) - bit_cast<uint32_t>(shift);
  const float k = shifted - shift;
  float r = std::fma(k, -0x1.62e400p-1f, c);  // ln 2 in two parts, the first with few bits
  r = std::fma(k, -0x1.7f7d1cp-20f, r);
  const float p = detail::horner(r, 0.000198527617612853646278381f, 0.00139304355252534151077271f,
                                 0.00833336077630519866943359f, 0.0416664853692054748535156f,
                                 0.166666671633720397949219f, 0.5f);
  const float y = 1.0f + std::fma(p, r * r, r);
  const uint32_t half = static_cast<uint32_t>(static_cast<int32_t>(n) >> 1);
  return y * detail::power_of_two(half) * detail::power_of_two(n - half);  // rounds once, to a subnormal too
}
GRADUS_HD inline double exp(double x) { return std::exp(x); }

/// e^x - 1, exact in relative terms for small x too; at most 1.5 ulp.
GRADUS_HD GRADUS_INLINE float expm1(float x) {
  constexpr float shift = 0x1.8p23f;
  float c = detail::select(x > 87.0f, 87.0f, x);  // beyond, subtracting 1 changes nothing
  c = detail::select(c < -20.0f, -20.0f, c);      // -1 from here on
  const float shifted = std::fma(c, 0x1.715476p+0f, shift);
  const uint32_t n = bit_cast<uint32_t>(shifted) - bit_cast<uint32_t>(shift);
  const float k = shifted - shift;
  float r = std::fma(k, -0x1.62e400p-1f, c);
  r = std::fma(k, -0x1.7f7d1cp-20f, r);
  const float p = detail::horner(r, 0.000198527617612853646278381f, 0.00139304355252534151077271f,
                                 0.00833336077630519866943359f, 0.0416664853692054748535156f,
                                 0.166666671633720397949219f, 0.5f);
  const float scale = detail::power_of_two(n);
  float y = std::fma(std::fma(p, r * r, r), scale, scale - 1.0f);  // 2^n (1 + (e^r - 1)) - 1
  y = detail::select(x > 87.0f, exp(x), y);
  return detail::select(x == 0.0f, x, y);
}
GRADUS_HD inline double expm1(double x) { return std::expm1(x); }

/// Natural logarithm; at most 1 ulp.
GRADUS_HD GRADUS_INLINE float log(float x) {
  const bool small = x < 0x1p-126f;  // a subnormal has no exponent to read
  const float a = detail::select(small, x * 0x1p23f, x);
  // x = 2^k m, m in [2/3, 4/3); e holds k where the exponent sits.
  const uint32_t e = (bit_cast<uint32_t>(a) - 0x3f2aaaabu) & 0xff800000u;
  const float m = bit_cast<float>(bit_cast<uint32_t>(a) - e) - 1.0f;
  const float k =
      std::fma(static_cast<float>(static_cast<int32_t>(e)), 0x1p-23f, detail::select(small, -23.0f, 0.0f));
  const float s = m * m;
  const float even = detail::horner(s, -0.130310059f, -0.121483512f, -0.166846126f, -0.249996200f);
  const float odd = detail::horner(s, 0.140869141f, 0.139814854f, 0.200120345f);
  const float p = detail::horner(m, std::fma(odd, m, even), 0.333331972f, -0.5f);
  float r = std::fma(k, 0x1.62e430p-1f, std::fma(p, s, m));
  r = detail::select(x == detail::kInf, x, r);
  r = detail::select(x == 0.0f, -detail::kInf, r);
  return detail::select(x >= 0.0f, r, detail::kNaN);
}
GRADUS_HD inline double log(double x) { return std::log(x); }

/// log(1 + x), exact in relative terms for small x too; at most 1.5 ulp.
GRADUS_HD GRADUS_INLINE float log1p(float x) {
  // 1 + x = 2^k (1 + m), m in [-1/4, 1/2)
  const uint32_t e = (bit_cast<uint32_t>(x + 1.0f) - bit_cast<uint32_t>(0.75f)) & 0xff800000u;
  const float scale = bit_cast<float>(bit_cast<uint32_t>(4.0f) - e);  // 4 / 2^k
  const float m = bit_cast<float>(bit_cast<uint32_t>(x) - e) + std::fma(0.25f, scale, -1.0f);
  const float s = m * m;
  const float p = detail::horner(m, 0.0439698584f, -0.0967441127f, 0.117008075f, -0.126285076f, 0.142653823f,
                                 -0.166611075f, 0.200002253f, -0.250000536f, 0.333333313f, -0.5f);
  float r = std::fma(static_cast<float>(static_cast<int32_t>(e)), 0x1.62e430p-24f, std::fma(p, s, m));
  r = detail::select(x == detail::kInf, x, r);
  r = detail::select(x == 0.0f, x, r);
  r = detail::select(x == -1.0f, -detail::kInf, r);
  return detail::select(x >= -1.0f, r, detail::kNaN);
}
GRADUS_HD inline double log1p(double x) { return std::log1p(x); }

/// Hyperbolic tangent; at most 1.5 ulp.
GRADUS_HD GRADUS_INLINE float tanh(float x) {
  const float t = std::fabs(x);
  const float large = 1.0f - 2.0f / (exp(2.0f * t) + 1.0f);
  const float s = x * x;
  const float p = detail::horner(s, -0.006276390515267849f, 0.021116215735673904f, -0.053875137120485306f,
                                 0.13332924246788025f, -0.3333333134651184f);
  const float small = std::fma(p * s, x, x);
  return std::copysign(detail::select(t < 0.6f, small, large), x);  // small loses the sign of -0
}
GRADUS_HD inline double tanh(double x) { return std::tanh(x); }

/// Error function; at most 1.5 ulp.
GRADUS_HD GRADUS_INLINE float erf(float x) {
  const float t = std::fabs(x), s = x * x;
  const float high = std::fma(-1.72853470e-5f, t, 3.83197126e-4f);
  const float low = std::fma(-3.88396438e-3f, t, 2.42546219e-2f);
  float q = detail::horner(t, std::fma(high, s, low), -1.06777877e-1f, -6.34846687e-1f, -1.28717512e-1f);
  q = detail::select(t > 4.0f, -100.0f, std::fma(q, t, -t));  // erf is 1 from 3.92 on
  const float large = 1.0f - exp(q);
  const float p = detail::horner(s, -5.96761703e-4f, 4.99119423e-3f, -2.67681349e-2f, 1.12819925e-1f,
                                 -3.76125336e-1f, 1.28379166e-1f);
  const float small = std::fma(p, x, x);
  return detail::select(t > 0.921875f, std::copysign(large, x), small);
}
GRADUS_HD inline double erf(double x) { return std::erf(x); }

/// 1 / (1 + e^-x) without overflow on either side; at most 2.5 ulp.
GRADUS_HD GRADUS_INLINE float sigmoid(float x) {
  const float e = exp(-std::fabs(x));
  return detail::select(x < 0.0f, e, 1.0f) / (1.0f + e);
}
GRADUS_HD inline double sigmoid(double x) {
  const double e = std::exp(-std::fabs(x));
  return (x < 0.0 ? e : 1.0) / (1.0 + e);
}

namespace detail {

// x = quadrant * pi/2 + r, |r| <= pi/4 (a hair more at the edges); the quadrant counts modulo 4.
struct Reduced {
  double r;
  uint32_t quadrant;
};

GRADUS_HD inline Reduced reduce_small(float x) {
  constexpr double shift = 0x1.8p52;
  const double shifted = std::fma(static_cast<double>(x), 0x1.45f306dc9c883p-1, shift);  // 2 / pi
  const double n = shifted - shift;
  const double r = std::fma(n, -0x1.921fb54442d18p+0, static_cast<double>(x));
  return {std::fma(n, -0x1.1a62633145c07p-54, r), static_cast<uint32_t>(bit_cast<uint64_t>(shifted))};
}

// Multiplies the mantissa by the 96 bits of 4/pi that matter for this exponent (Payne and Hanek).
GRADUS_HD inline Reduced reduce_large(float x) {
  static constexpr uint32_t four_over_pi[24] = {
      0x000000a2, 0x0000a2f9, 0x00a2f983, 0xa2f9836e, 0xf9836e4e, 0x836e4e44, 0x6e4e4415, 0x4e441529,
      0x441529fc, 0x1529fc27, 0x29fc2757, 0xfc2757d1, 0x2757d1f5, 0x57d1f534, 0xd1f534dd, 0xf534ddc0,
      0x34ddc0db, 0xddc0db62, 0xc0db6295, 0xdb629599, 0x6295993c, 0x95993c43, 0x993c4390, 0x3c439041};
  const uint32_t bits = bit_cast<uint32_t>(x);
  const uint32_t first = bits >> 26 & 15u;
  const uint32_t mantissa = ((bits & 0x7fffffu) | 0x800000u) << (bits >> 23 & 7u);
  const uint64_t high = mantissa * four_over_pi[first];  // what passes 32 bits is whole turns
  const uint64_t middle = uint64_t{mantissa} * four_over_pi[first + 4];
  const uint64_t low = uint64_t{mantissa} * four_over_pi[first + 8];
  const uint64_t product = (low >> 32 | high << 32) + middle;
  const uint64_t quadrant = (product + (uint64_t{1} << 61)) >> 62;
  const double r =
      static_cast<double>(static_cast<int64_t>(product - (quadrant << 62))) * 0x1.921fb54442d18p-62;
  const uint32_t negative = bits >> 31;
  const auto q = static_cast<uint32_t>(quadrant);
  return {negate_odd(negative, r), (q ^ (0u - negative)) + negative};
}

/// sin(x + turns * pi/2)
GRADUS_HD GRADUS_INLINE float sin_shifted(float x, uint32_t turns) {
  const Reduced a = reduce_small(x), b = reduce_large(x);
  const bool small = std::fabs(x) < 0x1p20f;
  const double r = select(small, a.r, b.r);
  const uint32_t quadrant = turns + (small ? a.quadrant : b.quadrant);
  const double s = r * r;
  const double sin_r = r + r * s *
                               horner(s, 0x16cd878c3b46a7p-71, -0x1a00f9e2cae774p-65, 0x111110896efbb2p-59,
                                      -0x15555554cbac77p-55);
  const double cos_r = horner(s, 0x199342e0ee5069p-68, -0x16c087e80f1e27p-62, 0x155553e1053a42p-57,
                              -0x1ffffffd0c5e81p-54, 1.0);
  const float rounded = static_cast<float>(negate_odd(quadrant >> 1, select_odd(quadrant, cos_r, sin_r)));
  return select(std::fabs(x) < kInf, rounded, kNaN);
}

/// log2 of a positive finite double, to about 2^-44 relative to 1.
GRADUS_HD inline double log2_wide(double x) {
  constexpr uint64_t sqrt_half = 0x3fe6a09e667f3bcd;
  const uint64_t e = (bit_cast<uint64_t>(x) - sqrt_half) & 0xfff0000000000000u;
  const double m = bit_cast<double>(bit_cast<uint64_t>(x) - e);  // in [sqrt(1/2), sqrt(2))
  const double s = (m - 1.0) / (m + 1.0);
  const double series = horner(s * s, 1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1.0);
  const double k = static_cast<double>(static_cast<int32_t>(static_cast<uint32_t>(e >> 32)) >> 20);
  return std::fma(s * series, 2.8853900817779268, k);  // 2 / ln 2
}

/// 2^x for |x| <= 200
GRADUS_HD inline double exp2_wide(double x) {
  constexpr double shift = 0x1.8p52;
  const double shifted = x + shift;
  const uint64_t n = bit_cast<uint64_t>(shifted) - bit_cast<uint64_t>(shift);
  const double r = (x - (shifted - shift)) * 0.69314718055994531;
  const double p = horner(r, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720,
                          1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1.0, 1.0);
  return p * bit_cast<double>((n + 1023u) << 52);
}

}  // namespace detail

/// Sine of any float, with exact reduction; at most 1 ulp.
GRADUS_HD GRADUS_INLINE float sin(float x) { return detail::select(x == 0.0f, x, detail::sin_shifted(x, 0)); }
GRADUS_HD inline double sin(double x) { return std::sin(x); }
/// Cosine; at most 1 ulp.
GRADUS_HD GRADUS_INLINE float cos(float x) { return detail::sin_shifted(x, 1); }
GRADUS_HD inline double cos(double x) { return std::cos(x); }

/// x^y with C's special cases: pow(x, 0) = pow(1, y) = 1 even for NaN, pow(-2, 3) = -8, pow(-2, 0.5) = NaN.
/// At most 1 ulp.
GRADUS_HD GRADUS_INLINE float pow(float x, float y) {
  const float ax = std::fabs(x);
  double t = static_cast<double>(y) * detail::log2_wide(static_cast<double>(ax));
  t = detail::select(t > 200.0, 200.0, t);
  t = detail::select(t < -200.0, -200.0, t);
  float r = static_cast<float>(detail::exp2_wide(t));
  // Outside the finite positive numbers the answer is 0 or inf.
  const bool up = (ax > 1.0f) == (y > 0.0f);
  const bool at_end = (ax == 0.0f) | (ax == detail::kInf) | (std::fabs(y) == detail::kInf);
  r = detail::select(at_end, detail::select(up, detail::kInf, 0.0f), r);
  r = detail::select(ax == 1.0f, 1.0f, r);
  // Above 2^24 every float is even; clamped, y's last bit can be read from a shifted double.
  const double whole = detail::select(std::fabs(y) > 0x1p26f, 0x1p26, static_cast<double>(y));
  const double shifted = whole + 0x1.8p52;
  const bool integer = shifted - 0x1.8p52 == whole;
  const bool odd = integer & ((bit_cast<uint64_t>(shifted) & 1u) != 0);
  const bool negative = bit_cast<uint32_t>(x) >> 31 != 0;
  r = detail::select(negative & odd, -r, r);
  r = detail::select((x < 0.0f) & (ax < detail::kInf) & !integer, detail::kNaN, r);
  r = detail::select((x == x) & (y == y), r, detail::kNaN);
  return detail::select((x == 1.0f) | (y == 0.0f), 1.0f, r);
}
GRADUS_HD inline double pow(double x, double y) { return std::pow(x, y); }

}  // namespace gradus::math
