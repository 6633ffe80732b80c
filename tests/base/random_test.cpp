#include <gradus/base/error.h>
#include <gradus/base/random.h>
#include <gradus/base/random_scope.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <thread>

namespace gradus {
namespace {

void expect_words(PhiloxWords got, std::array<uint32_t, 4> want) {
  for (int i = 0; i < 4; ++i) EXPECT_EQ(got.word[i], want[i]) << "word " << i;
}

// The lines `philox4x32 10` of Random123's kat_vectors.
TEST(Philox, KnownAnswers) {
  expect_words(philox4x32({{0, 0, 0, 0}}, 0, 0), {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr uint32_t f = 0xffffffff;
  expect_words(philox4x32({{f, f, f, f}}, f, f), {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  expect_words(philox4x32({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0),
               {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST(Philox, StreamPutsBlockBelowOffsetInTheCounter) {
  const PhiloxStream stream{0x299f31d0a4093822, 0x0370734413198a2e};
  expect_words(stream.words(0x85a308d3243f6a88), {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
  for (uint64_t i = 0; i < 8; ++i) EXPECT_EQ(stream.bits(i), stream.words(i / 4).word[i % 4]);
  EXPECT_EQ(stream.bits64(3), uint64_t{stream.words(1).word[3]} << 32 | stream.words(1).word[2]);
}

TEST(Random, UniformStaysBelowOneAndReachesBothEnds) {
  EXPECT_EQ(uniform_from_bits(0xffffffffu), 1.0f - 0x1p-24f);
  EXPECT_EQ(uniform_from_bits(~uint64_t{0}), 1.0 - 0x1p-53);
  EXPECT_EQ(uniform_from_bits(0u), 0.0f);
}

template <class T>
void check_moments(T (PhiloxStream::*draw)(uint64_t) const, double mean, double variance) {
  constexpr int n = 200'000;
  const PhiloxStream stream{7, 3};
  double sum = 0, squares = 0, lag = 0;
  for (int i = 0; i < n; ++i) {
    const double x = static_cast<double>((stream.*draw)(i)) - mean;
    sum += x;
    squares += x * x;
    lag += x * (static_cast<double>((stream.*draw)(i ^ 1)) - mean);  // the other half of the pair
  }
  const double five_sigma = 5 * std::sqrt(variance / n);
  EXPECT_TRUE(std::fabs(sum / n) <= five_sigma) << sum / n;
  EXPECT_TRUE(std::fabs(squares / n - variance) <= 0.02 * variance) << squares / n;
  EXPECT_TRUE(std::fabs(lag / n) <= 8 * variance / std::sqrt(n)) << lag / n;
}

TEST(Random, UniformMoments) {
  check_moments(&PhiloxStream::uniform<float>, 0.5, 1.0 / 12);
  check_moments(&PhiloxStream::uniform<double>, 0.5, 1.0 / 12);
}
TEST(Random, NormalMoments) {
  check_moments(&PhiloxStream::normal<float>, 0.0, 1.0);
  check_moments(&PhiloxStream::normal<double>, 0.0, 1.0);
}

TEST(Random, NormalHasTheRightTail) {
  int beyond = 0;
  constexpr int n = 400'000;
  for (int i = 0; i < n; ++i) beyond += std::fabs(PhiloxStream{1, 1}.normal<float>(i)) > 2.0f;
  EXPECT_TRUE(std::fabs(beyond / double{n} - 0.0455) <= 0.002) << beyond;
}

TEST(Random, BelowIsTheHighHalfOfTheProduct) {
  const PhiloxStream stream{5, 6};
  for (const uint64_t bound :
       {uint64_t{1}, uint64_t{10}, uint64_t{1} << 32, ~uint64_t{0}, uint64_t{0x123456789abcdef}}) {
    for (uint64_t i = 0; i < 100; ++i) {
      __extension__ using Wide = unsigned __int128;
      EXPECT_EQ(stream.below(i, bound), static_cast<uint64_t>(Wide{stream.bits64(i)} * bound >> 64));
    }
  }
}

TEST(Generator, EachReserveGivesAnotherStream) {
  Generator g(42);
  const PhiloxStream a = g.reserve(), b = g.reserve(3), c = g.reserve();
  EXPECT_EQ(a.seed, 42u);
  EXPECT_EQ(a.offset, 0u);
  EXPECT_EQ(b.offset, 1u);
  EXPECT_EQ(c.offset, 4u);
  EXPECT_NE(a.bits(0), b.bits(0));
}

TEST(Generator, StateBringsTheSameNumbersBack) {
  Generator g(0x1122334455667788);
  g.reserve(258);
  const Generator::State state = g.get_state();
  EXPECT_EQ(state,
            (Generator::State{0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 2, 1, 0, 0, 0, 0, 0, 0}));
  const uint32_t next = g.reserve().bits(9);
  Generator other(1);
  other.set_state(state);
  EXPECT_EQ(other.reserve().bits(9), next);
  EXPECT_EQ(other.initial_seed(), 0x1122334455667788u);
}

TEST(Generator, RefusesAStateOfAnotherLength) {
  Generator g;
  const std::vector<uint8_t> state(5);
  try {
    g.set_state(state);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "E-ARG");
    EXPECT_STREQ(e.what(),
                 "set_state: expected a generator state of 16 bytes, got 5\n"
                 "  hint: pass what get_state() returned");
  }
}

TEST(Generator, ManualSeedStartsAnewAndSeedIsFresh) {
  manual_seed(3);
  EXPECT_THROW(random_permutation(int64_t{1} << 62), Error);
  const auto first = random_permutation(10);
  EXPECT_NE(random_permutation(10), first);
  manual_seed(3);
  EXPECT_EQ(random_permutation(10), first);
  Generator g;
  EXPECT_EQ(g.initial_seed(), Generator::kDefaultSeed);
  const uint64_t a = g.seed();
  EXPECT_EQ(g.initial_seed(), a);
  EXPECT_NE(g.seed(), a);
}

TEST(Generator, ThreadsNeverShareAStream) {
  Generator g;
  std::vector<std::vector<uint64_t>> taken(4);
  std::vector<std::thread> threads;
  for (auto& mine : taken)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) mine.push_back(g.reserve().offset);
    });
  for (auto& t : threads) t.join();
  std::set<uint64_t> all;
  for (const auto& mine : taken) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), 4000u);
  EXPECT_EQ(*all.rbegin(), 3999u);
}

TEST(Randperm, IsAPermutation) {
  Generator g(1);
  for (const int64_t n : {0, 1, 2, 1000}) {
    auto order = random_permutation(n, g);
    std::sort(order.begin(), order.end());
    std::vector<int64_t> want(static_cast<size_t>(n));
    std::iota(want.begin(), want.end(), int64_t{0});
    EXPECT_EQ(order, want);
  }
  EXPECT_THROW(random_permutation(-1, g), Error);
}

TEST(Randperm, EveryOrderIsEquallyLikely) {
  Generator g(11);
  std::vector<int> count(6);
  for (int i = 0; i < 6000; ++i) {
    const auto p = random_permutation(3, g);
    ++count[static_cast<size_t>(p[0] * 2 + (p[1] > p[2] ? 1 : 0))];
  }
  for (const int c : count) EXPECT_TRUE(std::abs(c - 1000) <= 150) << c;  // five standard deviations
}

TEST(GeneratorGuard, replaces_the_default_generator_of_this_thread) {
  Generator& before = default_generator();
  Generator own(3), inner(4);
  {
    const GeneratorGuard guard(own);
    EXPECT_EQ(&default_generator(), &own);
    {
      const GeneratorGuard nested(inner);
      EXPECT_EQ(&default_generator(), &inner);
    }
    EXPECT_EQ(&default_generator(), &own);
    std::thread([&] { EXPECT_EQ(&default_generator(), &before); }).join();
  }
  EXPECT_EQ(&default_generator(), &before);
}

}  // namespace
}  // namespace gradus
