// Random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11).
//
// Philox has no state: a draw is a pure function of (seed, offset, index). `seed` is the user's; `offset`
// counts the calls that drew from the generator; `index` is the logical element of the result, never its
// place in memory. So the values are the same on every device, in every memory layout and for every number of
// threads. float: to the last bit; normal<double>() only to a few ulp, because double uses the platform's log
// and sin.
#pragma once
#include <gradus/base/macros.h>
#include <gradus/base/math.h>

#include <array>
#include <cstdint>
#include <mutex>
#include <span>
#include <type_traits>
#include <vector>

namespace gradus {

/// What one evaluation of Philox gives.
struct PhiloxWords {
  uint32_t word[4];
};

/// Philox4x32-10 of a counter and a key.
GRADUS_HD inline PhiloxWords philox4x32(PhiloxWords counter, uint32_t key0, uint32_t key1) {
  uint32_t c0 = counter.word[0], c1 = counter.word[1], c2 = counter.word[2], c3 = counter.word[3];
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * c0;
    const uint64_t b = uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<uint32_t>(b >> 32) ^ c1 ^ key0;
    c2 = static_cast<uint32_t>(a >> 32) ^ c3 ^ key1;
    c1 = static_cast<uint32_t>(b);
    c3 = static_cast<uint32_t>(a);
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

/// Where a call's random numbers come from; Generator::reserve() hands it out.
struct PhiloxStream {
  uint64_t seed = 0, offset = 0;

  /// Four words: bits(4 block) … bits(4 block + 3). Bulk loops call this once for four elements.
  GRADUS_HD PhiloxWords words(uint64_t block) const {
    return philox4x32({{static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                        static_cast<uint32_t>(offset), static_cast<uint32_t>(offset >> 32)}},
                      static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32));
  }
  /// 32 random bits of element `index`.
  GRADUS_HD uint32_t bits(uint64_t index) const { return words(index / 4).word[index % 4]; }
  /// 64 random bits of element `index`.
  GRADUS_HD uint64_t bits64(uint64_t index) const {
    const PhiloxWords w = words(index / 2);
    const uint64_t at = index % 2 * 2;
    return uint64_t{w.word[at + 1]} << 32 | w.word[at];
  }

  /// Uniform in [0, 1): a multiple of 2^-24 (float) or 2^-53 (double).
  template <class T>
  GRADUS_HD T uniform(uint64_t index) const;
  /// Normal with mean 0 and variance 1, by Box and Muller: elements 2k and 2k + 1 are the cosine and the sine
  /// half of one pair, sqrt(-2 ln u) cos(2 pi v) and … sin(2 pi v), u in (0, 1], v in [0, 1).
  template <class T>
  GRADUS_HD T normal(uint64_t index) const;
  /// Uniform in [0, bound), bound > 0: the high half of bits64 * bound. Its bias, bound / 2^64, cannot be
  /// observed.
  GRADUS_HD uint64_t below(uint64_t index, uint64_t bound) const;
};

/// The float in [0, 1) that 32 random bits stand for.
GRADUS_HD inline float uniform_from_bits(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }
/// The double in [0, 1) that 64 random bits stand for.
GRADUS_HD inline double uniform_from_bits(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

template <class T>
GRADUS_HD T PhiloxStream::uniform(uint64_t index) const {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>);
  if constexpr (std::is_same_v<T, float>)
    return uniform_from_bits(bits(index));
  else
    return uniform_from_bits(bits64(index));
}

template <class T>
GRADUS_HD T PhiloxStream::normal(uint64_t index) const {
  constexpr T two_pi = static_cast<T>(6.283185307179586476925);
  constexpr T step = std::is_same_v<T, float> ? static_cast<T>(0x1p-24) : static_cast<T>(0x1p-53);
  const uint64_t first = index & ~uint64_t{1};
  const T u = uniform<T>(first) + step;  // exact, and never 0
  const T angle = two_pi * uniform<T>(first + 1);
  return math::sqrt(T{-2} * math::log(u)) * (index % 2 == 0 ? math::cos(angle) : math::sin(angle));
}

GRADUS_HD inline uint64_t PhiloxStream::below(uint64_t index, uint64_t bound) const {
  const uint64_t a = bits64(index);
  const uint64_t a0 = a & 0xffffffffu, a1 = a >> 32, b0 = bound & 0xffffffffu, b1 = bound >> 32;
  const uint64_t low = a0 * b0, middle = a1 * b0 + (low >> 32), cross = a0 * b1 + (middle & 0xffffffffu);
  return a1 * b1 + (middle >> 32) + (cross >> 32);
}

/// Hands out streams of random numbers, one per call that wants some. Safe to use from several threads: each
/// gets streams of its own, though which thread gets which is up to the scheduler.
class Generator {
 public:
  static constexpr uint64_t kDefaultSeed = 67280421310721;  // PyTorch's
  using State = std::array<uint8_t, 16>;

  explicit Generator(uint64_t seed = kDefaultSeed) : stream_{seed, 0} {}
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  /// Starts anew from `seed`.
  void manual_seed(uint64_t seed);
  /// Starts anew from a seed taken from the system, and returns it.
  uint64_t seed();
  /// The seed in use.
  uint64_t initial_seed() const;
  /// The stream of the next call; `calls` streams at consecutive offsets are taken.
  PhiloxStream reserve(uint64_t calls = 1);
  /// Seed and offset, 8 bytes each, least significant first.
  State get_state() const;
  /// Continues from a state that get_state() returned; throws E-ARG unless it has 16 bytes.
  void set_state(std::span<const uint8_t> state);

 private:
  mutable std::mutex mutex_;
  PhiloxStream stream_;
};

/// The generator that functions use when none is passed.
Generator& default_generator();
/// default_generator().manual_seed(seed)
void manual_seed(uint64_t seed);

/// The numbers 0 … n-1 in random order (Fisher and Yates), from one reserve(). Throws E-ARG if n < 0.
std::vector<int64_t> random_permutation(int64_t n, Generator& generator = default_generator());

}  // namespace gradus
