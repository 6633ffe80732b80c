// Half and BFloat16 against a reference in double arithmetic, and the two ways to convert Half against each
// other.
#include <gradus/base/half.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

namespace gradus {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// The value of a 16-bit format with `fraction` fraction bits and exponent bias `bias`, by definition.
double value_of(uint16_t half, int fraction, int bias) {
  const int exponent = (half & 0x7fff) >> fraction;
  const int rest = half & ((1 << fraction) - 1);
  const double sign = half & 0x8000 ? -1 : 1;
  if (exponent == 2 * bias + 1) return rest ? std::nan("") : sign * kInf;
  if (exponent == 0) return sign * std::ldexp(rest, 1 - bias - fraction);
  return sign * std::ldexp(rest + (1 << fraction), exponent - bias - fraction);
}

// Rounds to nearest even by definition: the spacing at x, then nearbyint (which rounds halves to even).
double round_to(double x, int fraction, int bias, double largest) {
  if (x == 0 || std::isnan(x) || std::isinf(x)) return x;
  const int exponent = std::max(std::ilogb(x), 1 - bias);
  const double spacing = std::ldexp(1.0, exponent - fraction);
  const double rounded = std::nearbyint(x / spacing) * spacing;
  return std::abs(rounded) > largest ? std::copysign(kInf, x) : rounded;
}

bool same(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

TEST(Half, all_65536_values) {
  for (uint32_t h = 0; h < 65536; ++h) {
    const auto half = static_cast<uint16_t>(h);
    Half x;
    x.bits = half;
    const double expected = value_of(half, 10, 15);
    ASSERT_TRUE(same(static_cast<float>(x), expected)) << h;
    ASSERT_TRUE(same(Half::to_float(half), expected)) << h;
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(static_cast<float>(Half(static_cast<float>(x))))) << h;
    } else {  // back again: nothing is lost
      ASSERT_EQ(Half(static_cast<float>(x)).bits, half);
      ASSERT_EQ(Half::from_float(Half::to_float(half)), half);
    }
  }
}

TEST(BFloat16, all_65536_values) {
  for (uint32_t h = 0; h < 65536; ++h) {
    BFloat16 x;
    x.bits = static_cast<uint16_t>(h);
    const double expected = value_of(x.bits, 7, 127);
    ASSERT_TRUE(same(static_cast<float>(x), expected)) << h;
    const BFloat16 back(static_cast<float>(x));
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(static_cast<float>(back))) << h;
    } else {
      ASSERT_EQ(back.bits, x.bits);
    }
  }
}

// Every 16-bit pattern's upper half with lower halves around the ties, and a stride through all floats.
template <class F>
void sweep(const F& check) {
  for (uint32_t high = 0; high < 65536; ++high)
    for (uint32_t low :
         {0u, 1u, 0xfffu, 0x1000u, 0x1001u, 0x2fffu, 0x3000u, 0x3001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      check(std::bit_cast<float>(high << 16 | low));
  for (uint64_t x = 0; x < (uint64_t{1} << 32); x += 4099)
    check(std::bit_cast<float>(static_cast<uint32_t>(x)));
}

TEST(Half, rounds_to_nearest_even) {
  sweep([](float x) {
    const double expected = round_to(x, 10, 15, 65504);
    const Half half(x);
    ASSERT_TRUE(same(static_cast<float>(half), expected)) << x;
    ASSERT_TRUE(same(Half::to_float(Half::from_float(x)), expected)) << x;
  });
}

TEST(BFloat16, rounds_to_nearest_even) {
  constexpr double kLargest = 3.3895313892515355e38;
  sweep([](float x) {
    ASSERT_TRUE(same(static_cast<float>(BFloat16(x)), round_to(x, 7, 127, kLargest))) << x;
  });
}

template <class T>
T below(T x) {
  --x.bits;
  return x;
}

// Between each two neighbours of a half type, subnormal ones too: the float32 in the middle goes to the even
// one, the float32 next to it to the nearer. Both signs; `infinity` is the type's, as bits.
template <class T>
void check_midpoints(uint16_t infinity) {
  for (uint16_t low = 0; low < infinity; ++low) {
    T a, b;
    a.bits = low, b.bits = static_cast<uint16_t>(low + 1);
    const float lower = a, upper = b;
    // The largest number's upper neighbour, were there one, is where infinity begins.
    const double next = std::isinf(upper) ? 2.0 * lower - static_cast<float>(below(a)) : upper;
    const auto middle = static_cast<float>((lower + next) / 2);
    ASSERT_EQ(middle, (lower + next) / 2);
    const uint16_t even = low % 2 == 0 ? a.bits : b.bits;
    for (const uint16_t sign : {0x0000, 0x8000}) {
      const float s = sign ? -1.0f : 1.0f;
      ASSERT_EQ(T(s * middle).bits, even | sign) << middle;
      ASSERT_EQ(T(s * std::nextafter(middle, 0.0f)).bits, a.bits | sign) << middle;
      ASSERT_EQ(T(s * std::nextafter(middle, std::numeric_limits<float>::infinity())).bits, b.bits | sign)
          << middle;
    }
  }
}

TEST(Half, midpoints_between_all_neighbours) { check_midpoints<Half>(0x7c00); }
TEST(BFloat16, midpoints_between_all_neighbours) { check_midpoints<BFloat16>(0x7f80); }

TEST(Half, known_values) {
  EXPECT_EQ(Half(1.0f).bits, 0x3c00);
  EXPECT_EQ(Half(-2.0f).bits, 0xc000);
  EXPECT_EQ(Half(65504.0f).bits, 0x7bff);
  EXPECT_EQ(Half(65519.996f).bits, 0x7bff);
  EXPECT_EQ(Half(65520.0f).bits, 0x7c00);
  EXPECT_EQ(Half(5.9604645e-8f).bits, 0x0001);
  EXPECT_EQ(Half(2.9802322e-8f).bits, 0x0000);  // half the smallest: to even
  EXPECT_EQ(Half(-0.0f).bits, 0x8000);
  EXPECT_EQ(Half(2049.0f).bits, Half(2048.0f).bits);
  EXPECT_EQ(BFloat16(1.0f).bits, 0x3f80);
  EXPECT_EQ(BFloat16(257.0f).bits, BFloat16(256.0f).bits);
  EXPECT_EQ(Half().bits, 0);
}

}  // namespace
}  // namespace gradus
