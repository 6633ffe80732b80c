#include <atomic>
#include <cstdlib>
#include <kernels/blocks/reduce.cuh>
#include <numeric>

#include "kernels/kernel_testing.h"

namespace gradus::kernels {
namespace {

// y[thread] of one block, by a function of the block: the smallest kernel.
template <class F>
struct Probe {
  static constexpr const char* kName = "probe";
  F f;
  int64_t blocks = 1;
  size_t bytes = 0;
  static constexpr bool supports(int block_size) { return whole_warps(block_size); }
  int64_t groups(int) const { return blocks; }
  size_t shared_bytes(int) const { return bytes; }
  template <Block B>
  void operator()(B& block) const {
    f(block);
  }
};
template <class F>
Probe<F> probe(F f, size_t bytes = 0) {
  return {f, 1, bytes};
}

std::string message_of(const std::function<void()>& f, const char* code) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code);
    return e.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

TEST(Block, SizesOfShufflingKernels) {
  std::vector<int> sizes;
  for (int n = -1; n <= 1100; ++n)
    if (whole_warps(n) && n <= 100) sizes.push_back(n);
  EXPECT_EQ(sizes, (std::vector<int>{1, 2, 4, 8, 16, 32, 64, 96}));
  EXPECT_TRUE(whole_warps(1024));
  EXPECT_FALSE(whole_warps(1056));
  EXPECT_FALSE(any_size(0));
  EXPECT_FALSE(any_size(1025));
}

TEST(Block, RefusesASizeTheKernelDoesNotSupport) {
  const auto nothing = probe([](auto&) {});
  EXPECT_EQ(message_of([&] { run_threads(nothing, 7); }, "E-BLOCK-SIZE"),
            "probe: cannot run with a block of 7 threads\n  hint: use a block of 4 or 8");
  EXPECT_EQ(message_of([&] { run_threads(nothing, 5000); }, "E-BLOCK-SIZE"),
            "probe: cannot run with a block of 5000 threads\n  hint: use a block of 1024");
  EXPECT_EQ(message_of([&] { run_threads(nothing, 0); }, "E-BLOCK-SIZE"),
            "probe: cannot run with a block of 0 threads\n  hint: use a block of 1");
}

struct WholeWarpsOnly {
  static constexpr const char* kName = "mma";
  static constexpr bool supports(int block_size) { return block_size >= 32 && whole_warps(block_size); }
  int64_t groups(int) const { return 1; }
  size_t shared_bytes(int) const { return 0; }
  template <Block B>
  void operator()(B&) const {}
};

TEST(Block, SerialRunIsRefusedWhereOneThreadIsTooFew) {
  EXPECT_EQ(message_of([] { run_serial(WholeWarpsOnly{}); }, "E-BLOCK-SIZE"),
            "mma: cannot run with a block of 1 threads\n  hint: use a block of 32");
}

TEST(ThreadBlock, EveryThreadOfEveryBlockRunsOnce) {
  std::vector<std::atomic<int>> seen(3 * 8);
  auto body = probe([&](auto& block) {
    EXPECT_EQ(block.size(), 8);
    ++seen[static_cast<size_t>(block.group_index() * block.size() + block.thread_rank())];
  });
  body.blocks = 3;
  run_threads(body, 8);
  for (const auto& n : seen) EXPECT_EQ(n, 1);
}

TEST(ThreadBlock, ShuffleExchangesWithinAWarp) {
  for (const int size : {2, 16, 96}) {
    std::vector<double> got(static_cast<size_t>(size)), want = got;
    const int mask = size == 2 ? 1 : 5;
    run_threads(probe([&](auto& block) {
                  const auto rank = static_cast<size_t>(block.thread_rank());
                  got[rank] = block.shuffle_xor(static_cast<double>(rank), mask);
                  want[rank] = static_cast<double>(static_cast<int>(rank) ^ mask);
                }),
                size);
    EXPECT_EQ(got, want);
  }
}

TEST(ThreadBlock, SharedMemoryIsOneForAllAndStartsAsNaN) {
  run_threads(probe(
                  [](auto& block) {
                    float* first = block.template shared<float>(3);
                    double* second = block.template shared<double>(16);
                    EXPECT_TRUE(std::isnan(first[0]) && std::isnan(second[15]));
                    EXPECT_EQ(reinterpret_cast<std::byte*>(second) - reinterpret_cast<std::byte*>(first), 16);
                    block.sync();
                    second[block.thread_rank()] = block.thread_rank();
                    block.sync();
                    EXPECT_EQ(second[15 - block.thread_rank()], 15 - block.thread_rank());
                  },
                  shared_size<float>(3) + shared_size<double>(16)),
              16);
}

TEST(ThreadBlock, TakingMoreSharedMemoryThanDeclaredIsAnError) {
  EXPECT_EQ(message_of([] { run_threads(probe([](auto& b) { b.template shared<float>(8); }, 16), 1); },
                       "E-SHARED-MEMORY"),
            "shared: the kernel takes 32 bytes and declared 16\n  hint: add them to its shared_bytes()");
}

TEST(ThreadBlock, ReportsThreadsThatMissASync) {
  const auto body = probe([](auto& block) {
    block.sync();
    if (block.thread_rank() == 3) return;  // the others must not hang
    block.sync();
  });
  EXPECT_EQ(message_of([&] { run_threads(body, 4); }, "E-DIVERGENCE"),
            "probe: the threads of block 0 did not stay together: thread 0 synced 2 times, thread 3 1 times\n"
            "  hint: let every thread reach each sync() and each shuffle");
}

TEST(ThreadBlock, ReportsThreadsThatMissAShuffle) {
  const auto body = probe([](auto& block) {
    if (block.thread_rank() != 33) block.shuffle_xor(1.0f, 1);
  });
  EXPECT_EQ(
      message_of([&] { run_threads(body, 64); }, "E-DIVERGENCE"),
      "probe: the threads of block 0 did not stay together: thread 32 shuffled 1 times, thread 33 0 times\n"
      "  hint: let every thread reach each sync() and each shuffle");
}

TEST(ThreadBlock, AnExceptionReachesTheCaller) {
  const auto body = probe([](auto& block) {
    if (block.thread_rank() == 1) throw std::runtime_error("from thread 1");
    block.sync();
  });
  EXPECT_THROW(run_threads(body, 2), std::runtime_error);
}

TEST(Reduce, EveryThreadGetsTheSumOfAll) {
  for (const int size : {1, 2, 16, 32, 64, 96}) {
    std::vector<int64_t> got(static_cast<size_t>(size));
    const auto bytes = shared_size<int64_t>(reduce_slots(size));
    run_threads(probe(
                    [&](auto& block) {
                      int64_t* scratch = block.template shared<int64_t>(reduce_slots(block.size()));
                      const int64_t rank = block.thread_rank();
                      const int64_t sum = block_reduce(block, rank, Sum{}, scratch);
                      got[static_cast<size_t>(rank)] = block_reduce(block, sum + rank, Sum{}, scratch);
                    },
                    bytes),
                size);
    const int64_t sum = int64_t{size} * (size - 1) / 2;
    EXPECT_EQ(got, std::vector<int64_t>(static_cast<size_t>(size), sum * size + sum));
  }
}

TEST(Reduce, NaNWinsAndTiesGoToTheFirst) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(Max{}(nan, 1.0f)) && std::isnan(Max{}(1.0f, nan)));
  EXPECT_TRUE(std::isnan(Min{}(nan, 1.0f)) && std::isnan(Min{}(1.0f, nan)));
  using F = Found<float>;
  EXPECT_EQ(ArgMax{}(F{2, 5}, F{2, 1}).index, 1);
  EXPECT_EQ(ArgMax{}(F{2, 5}, F{nan, 9}).index, 9);
  EXPECT_EQ(ArgMin{}(F{nan, 3}, F{nan, 2}).index, 2);
  EXPECT_EQ(ArgMin{}(F{0, -1}, F{7, 2}).index, 2);
  EXPECT_EQ(ArgMin{}(F{1, 4}, F{0, 6}).index, 6);
}

// A two-level reduction that lacks the sync before its scratch is written again. The values come out right
// nearly every time, so only ThreadSanitizer can tell: in the tsan build this test runs it in a child process
// and expects the report.
struct MissingSync {
  static constexpr const char* kName = "missing_sync";
  int* out;
  bool broken;
  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int) const { return 1; }
  size_t shared_bytes(int block_size) const { return shared_size<int>(block_size); }
  template <Block B>
  void operator()(B& block) const {
    int* part = block.template shared<int>(block.size());
    for (int round = 0; round < 2; ++round) {
      part[block.thread_rank()] = block.thread_rank() + round;
      block.sync();
      int sum = 0;
      for (int t = 0; t < block.size(); ++t) sum += part[t];
      if (!broken) block.sync();
      out[block.thread_rank()] = sum;
    }
  }
};

#ifdef GRADUS_UNDER_TSAN
TEST(ThreadBlockDeathTest, ThreadSanitizerSeesAMissingSync) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  std::vector<int> out(64);
  EXPECT_EXIT((run_threads(MissingSync{out.data(), true}, 64), std::exit(0)), ::testing::ExitedWithCode(66),
              "data race");
}
#endif

TEST(ThreadBlock, TheSameKernelWithItsSyncIsClean) {
  std::vector<int> out(64);
  run_threads(MissingSync{out.data(), false}, 64);
  EXPECT_EQ(out, std::vector<int>(64, 64 * 63 / 2 + 64));
}

}  // namespace
}  // namespace gradus::kernels
