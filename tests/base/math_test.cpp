// gradus::math against double precision. By default every 1021st float (each exponent, both signs) and all
// special values; GRADUS_EXHAUSTIVE=1 tries all 2^32.
#include <gradus/base/math.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <vector>

namespace gradus {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// The gap between neighbouring floats around `exact`.
double ulp(double exact) {
  const int e = std::ilogb(std::fabs(exact) > 0x1p-126 ? exact : 0x1p-126);
  return std::ldexp(1.0, e - 23);
}

// |got - exact| in units of the last place; 0 where both are NaN, infinite where only one is or an infinity
// is wrong.
double error_in_ulp(float got, double exact) {
  if (std::isnan(exact)) return std::isnan(got) ? 0.0 : kInf;
  const double overflow = 0x1.ffffffp127;  // from here on round-to-nearest gives inf
  if (std::isinf(got))
    return std::fabs(exact) >= overflow * (1 - 1e-7) && (got > 0) == (exact > 0) ? 0.0 : kInf;
  if (std::isinf(exact)) return kInf;
  if (std::fabs(exact) > std::numeric_limits<float>::max())
    return std::fabs(static_cast<double>(got) - exact) / 0x1p104;
  const double error = std::fabs(static_cast<double>(got) - exact) / ulp(exact);
  return std::isnan(error) ? kInf : error;
}

// Both functions are types, not pointers, so that the loop over a block of floats can become vector code.
template <class Got, class Exact>
void expect_within(double bound, Got got, Exact exact) {
  const bool all = std::getenv("GRADUS_EXHAUSTIVE") != nullptr;
  const uint64_t step = all ? 1 : 1021;
  constexpr int kBlock = 4096;
  std::vector<float> x(kBlock), y(kBlock);
  double worst = 0;
  float worst_at = 0;
  for (uint64_t begin = 0; begin < (uint64_t{1} << 32); begin += step * kBlock) {
    for (int i = 0; i < kBlock; ++i) x[i] = bit_cast<float>(static_cast<uint32_t>(begin + i * step));
    for (int i = 0; i < kBlock; ++i) y[i] = got(x[i]);
    for (int i = 0; i < kBlock; ++i) {
      const double error = error_in_ulp(y[i], exact(static_cast<double>(x[i])));
      if (!(error <= worst)) worst = error, worst_at = x[i];
    }
  }
  EXPECT_TRUE(worst <= bound) << worst << " ulp at " << std::hexfloat << worst_at << ": got " << got(worst_at)
                              << ", exact " << exact(static_cast<double>(worst_at));
  ::testing::Test::RecordProperty("worst_ulp", std::to_string(worst));
}

#define EXPECT_WITHIN(bound, name, exact) \
  expect_within(                          \
      bound, [](float x) { return math::name(x); }, [](double x) -> double { return exact; })

TEST(Math, ExpAgainstDouble) { EXPECT_WITHIN(1.0, exp, std::exp(x)); }
TEST(Math, Expm1AgainstDouble) { EXPECT_WITHIN(1.5, expm1, std::expm1(x)); }
TEST(Math, LogAgainstDouble) { EXPECT_WITHIN(1.0, log, std::log(x)); }
TEST(Math, Log1pAgainstDouble) { EXPECT_WITHIN(1.5, log1p, std::log1p(x)); }
TEST(Math, TanhAgainstDouble) { EXPECT_WITHIN(1.5, tanh, std::tanh(x)); }
TEST(Math, ErfAgainstDouble) { EXPECT_WITHIN(1.5, erf, std::erf(x)); }
TEST(Math, SigmoidAgainstDouble) { EXPECT_WITHIN(2.5, sigmoid, 1.0 / (1.0 + std::exp(-x))); }
TEST(Math, RsqrtAgainstDouble) { EXPECT_WITHIN(1.5, rsqrt, 1.0 / std::sqrt(x)); }
TEST(Math, SinAgainstDouble) { EXPECT_WITHIN(1.0, sin, std::sin(x)); }
TEST(Math, CosAgainstDouble) { EXPECT_WITHIN(1.0, cos, std::cos(x)); }

TEST(Math, SpecialValues) {
  EXPECT_EQ(math::exp(-kInf), 0.0f);
  EXPECT_EQ(math::expm1(-kInf), -1.0f);
  EXPECT_EQ(math::expm1(kInf), kInf);
  EXPECT_TRUE(std::isnan(math::expm1(kNaN)));
  EXPECT_EQ(math::exp(kInf), kInf);
  EXPECT_EQ(math::exp(0.0f), 1.0f);
  EXPECT_EQ(math::exp(-103.5f), std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(math::log(0.0f), -kInf);
  EXPECT_EQ(math::log(-0.0f), -kInf);
  EXPECT_EQ(math::log(1.0f), 0.0f);
  EXPECT_TRUE(std::isnan(math::log(-1.0f)));
  EXPECT_TRUE(std::isnan(math::log(-kInf)));
  EXPECT_EQ(math::log1p(-1.0f), -kInf);
  EXPECT_EQ(math::tanh(kInf), 1.0f);
  EXPECT_EQ(math::tanh(-kInf), -1.0f);
  EXPECT_EQ(math::erf(-kInf), -1.0f);
  EXPECT_EQ(math::sigmoid(-kInf), 0.0f);
  EXPECT_EQ(math::sigmoid(kInf), 1.0f);
  EXPECT_EQ(math::sigmoid(0.0f), 0.5f);
  for (auto f : {+[](float x) { return math::exp(x); }, +[](float x) { return math::log(x); },
                 +[](float x) { return math::log1p(x); }, +[](float x) { return math::tanh(x); },
                 +[](float x) { return math::erf(x); }, +[](float x) { return math::sigmoid(x); },
                 +[](float x) { return math::sin(x); }, +[](float x) { return math::cos(x); }})
    EXPECT_TRUE(std::isnan(f(kNaN)));
  EXPECT_TRUE(std::isnan(math::sin(kInf)));
}

TEST(Math, OddFunctionsKeepTheSignOfZero) {
  for (auto f : {+[](float x) { return math::log1p(x); }, +[](float x) { return math::tanh(x); },
                 +[](float x) { return math::erf(x); }, +[](float x) { return math::sin(x); },
                 +[](float x) { return math::expm1(x); }}) {
    EXPECT_EQ(bit_cast<uint32_t>(f(-0.0f)), 0x80000000u);
    EXPECT_EQ(bit_cast<uint32_t>(f(0.0f)), 0u);
  }
}

TEST(Math, PowAgainstDouble) {
  double worst = 0;
  float worst_x = 0, worst_y = 0;
  auto next = [state = uint64_t{1}]() mutable {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state >> 32);
  };
  for (int i = 0; i < 400'000; ++i) {
    const float x = bit_cast<float>(next());
    // Half the exponents keep the result in range: y such that |y log2 x| < 160.
    const float wanted = static_cast<float>(next()) * 0x1p-32f * 320 - 160;
    const float y = i % 2 != 0 ? bit_cast<float>(next()) : wanted / std::log2(std::fabs(x));
    const double error = error_in_ulp(math::pow(std::fabs(x), y), std::pow(double{std::fabs(x)}, double{y}));
    if (!(error <= worst)) worst = error, worst_x = std::fabs(x), worst_y = y;
  }
  EXPECT_TRUE(worst <= 1.0) << worst << " ulp at pow(" << worst_x << ", " << worst_y << ")";
}

TEST(Math, PowSpecialCasesAreThoseOfC) {
  const float xs[] = {0.0f,  -0.0f, 1.0f,  -1.0f, 2.0f,      -2.0f,      0.5f,
                      -0.5f, kInf,  -kInf, kNaN,  0x1p-149f, -0x1p-149f, 3e38f};
  const float ys[] = {0.0f,  -0.0f, 1.0f,  -1.0f,       2.0f,        3.0f, -3.0f, 0.5f,  -0.5f,
                      1e10f, kInf,  -kInf, 16777215.0f, 33554432.0f, kNaN, -2.5f, 4e30f, -7e30f};
  for (const float x : xs) {
    for (const float y : ys) {
      const auto exact = static_cast<float>(std::pow(double{x}, double{y}));
      const float got = math::pow(x, y);
      if (std::isnan(exact)) {
        EXPECT_TRUE(std::isnan(got)) << x << "^" << y << " gave " << got;
      } else {
        EXPECT_EQ(bit_cast<uint32_t>(got), bit_cast<uint32_t>(exact)) << x << "^" << y << " gave " << got;
      }
    }
  }
}

}  // namespace
}  // namespace gradus
