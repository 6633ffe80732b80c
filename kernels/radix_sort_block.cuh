// A stable sort of numbered keys: least significant digit first, four bits at a time. For each digit
// SortCount, SortStarts and SortMove run one after another.
#pragma once
#include <kernels/blocks/launch.cuh>

namespace gradus::kernels {

namespace radix {

inline constexpr int kBits = 4, kDigits = 1 << kBits;
/// Keys of a block, whatever its threads: each has neighbours.
inline constexpr int64_t kTile = 2048;

/// The sum of `value` over the threads before this one. `sums`: size() elements of shared memory, free again
/// on return.
template <Block B>
GRADUS_HD int64_t sum_before(B& block, int64_t value, int64_t* sums) {
  const int rank = block.thread_rank();
  sums[rank] = value;
  block.sync();
  for (int step = 1; step < block.size(); step *= 2) {
    const int64_t more = rank >= step ? sums[rank - step] : 0;
    block.sync();
    sums[rank] += more;
    block.sync();
  }
  const int64_t before = sums[rank] - value;
  block.sync();
  return before;
}

/// What the kernels of one digit know: `count` keys, and the bits that are looked at.
struct Digit {
  int64_t count;
  int shift;
  GRADUS_HD int of(uint32_t key) const { return static_cast<int>(key >> shift) & (kDigits - 1); }
};

constexpr int64_t tiles(int64_t count) { return (count + kTile - 1) / kTile; }

/// Calls f(i) for the keys of the calling thread, in order.
template <Block B, class F>
GRADUS_HD void for_each_key(const B& block, int64_t count, const F& f) {
  const int64_t each = (kTile + block.size() - 1) / block.size();
  const int64_t tile = block.group_index() * kTile, first = tile + block.thread_rank() * each;
  const int64_t tile_end = tile + kTile < count ? tile + kTile : count;
  const int64_t end = first + each < tile_end ? first + each : tile_end;
  for (int64_t i = first; i < end; ++i) f(i);
}

/// A counter for each digit and thread of a block. start(d, t): keys of the tile before those with digit d
/// that thread t has, in sorted order.
class Ranks {
 public:
  static constexpr size_t shared_bytes(int block_size) {
    return shared_size<uint32_t>(int64_t{kDigits + 1} * block_size) + shared_size<int64_t>(block_size);
  }
  template <Block B>
  GRADUS_HD Ranks(B& block, const Digit& digit, const uint32_t* keys)
      : threads_(block.size()),
        counters_(block.template shared<uint32_t>(int64_t{kDigits + 1} * block.size())) {
    int64_t* sums = block.template shared<int64_t>(block.size());
    const int rank = block.thread_rank();
    for (int d = 0; d < kDigits; ++d) start(d, rank) = 0;
    for_each_key(block, digit.count, [&](int64_t i) { ++start(digit.of(keys[i]), rank); });
    block.sync();
    uint32_t* run = counters_ + rank * (kDigits + 1);  // kDigits counters in a row
    uint32_t total = 0;
    for (int j = 0; j < kDigits; ++j) total += run[j];
    auto before = static_cast<uint32_t>(sum_before(block, total, sums));
    for (int j = 0; j < kDigits; ++j) {
      const uint32_t here = run[j];
      run[j] = before;
      before += here;
    }
    block.sync();
  }
  // A gap after each thread's run: else the threads of a warp would all read one bank.
  GRADUS_HD uint32_t& start(int digit, int thread) const {
    const int counter = digit * threads_ + thread;
    return counters_[counter + counter / kDigits];
  }

 private:
  int threads_;
  uint32_t* counters_;
};

}  // namespace radix

/// counts[d, tile] = how many keys of the tile have digit d.
struct SortCount {
  static constexpr const char* kName = "sort_count";
  radix::Digit digit;
  const uint32_t* keys;
  uint32_t* counts;

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int) const { return radix::tiles(digit.count); }
  size_t shared_bytes(int block_size) const { return radix::Ranks::shared_bytes(block_size); }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    const radix::Ranks ranks(block, digit, keys);
    const int64_t left = digit.count - block.group_index() * radix::kTile;
    const auto all = static_cast<uint32_t>(left < radix::kTile ? left : radix::kTile);
    for (int d = block.thread_rank(); d < radix::kDigits; d += block.size()) {
      const uint32_t end = d + 1 < radix::kDigits ? ranks.start(d + 1, 0) : all;
      counts[d * radix::tiles(digit.count) + block.group_index()] = end - ranks.start(d, 0);
    }
  }
};

/// counts[i] = the sum of the counts before it. One block.
struct SortStarts {
  static constexpr const char* kName = "sort_starts";
  uint32_t* counts;
  int64_t n;

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int) const { return 1; }
  size_t shared_bytes(int block_size) const { return shared_size<int64_t>(block_size); }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    int64_t* sums = block.template shared<int64_t>(block.size());
    const int64_t each = blocks_for(n, block.size()), first = block.thread_rank() * each;
    const int64_t end = first + each < n ? first + each : n;
    int64_t total = 0;
    for (int64_t i = first; i < end; ++i) total += counts[i];
    int64_t before = radix::sum_before(block, total, sums);
    for (int64_t i = first; i < end; ++i) {
      const uint32_t here = counts[i];
      counts[i] = static_cast<uint32_t>(before);
      before += here;
    }
  }
};

/// Moves keys and their numbers to where the digit puts them; keys of one digit stay in order.
struct SortMove {
  static constexpr const char* kName = "sort_move";
  radix::Digit digit;
  const uint32_t *keys, *numbers;
  const uint32_t* starts;  // what SortStarts made
  uint32_t *sorted_keys, *sorted_numbers;

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int) const { return radix::tiles(digit.count); }
  size_t shared_bytes(int block_size) const {
    return radix::Ranks::shared_bytes(block_size) + shared_size<uint32_t>(radix::kDigits);
  }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    const radix::Ranks ranks(block, digit, keys);
    const int rank = block.thread_rank();
    uint32_t* shift = block.template shared<uint32_t>(radix::kDigits);  // from place in the tile to place
    for (int d = rank; d < radix::kDigits; d += block.size())
      shift[d] = starts[d * radix::tiles(digit.count) + block.group_index()] - ranks.start(d, 0);
    block.sync();
    radix::for_each_key(block, digit.count, [&](int64_t i) {
      const int d = digit.of(keys[i]);
      const uint32_t to = shift[d] + ranks.start(d, rank)++;
      sorted_keys[to] = keys[i];
      sorted_numbers[to] = numbers[i];
    });
  }
};

}  // namespace gradus::kernels
