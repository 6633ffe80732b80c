// What the others say, and how soon, when a rank dies, stops, does something else or nothing.
#include <gradus/gradus.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "support/expect_error.h"
#include "support/ranks.h"

namespace gradus::distributed {
namespace {

using namespace std::chrono_literals;
using ::gradus::testing::error_in;
using ::gradus::testing::RankResult;
using ::gradus::testing::run_ranks;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kRanks = 3;

void reduce_for_ever(const std::function<void(int)>& at_step) {
  for (int step = 0;; ++step) {
    at_step(step);
    Tensor x = ones({1'000'000});
    all_reduce(x);
  }
}

void expect_all_but(int victim, const std::vector<RankResult>& results,
                    const ::testing::Matcher<std::string>& says) {
  for (int rank = 0; rank < static_cast<int>(results.size()); ++rank) {
    if (rank == victim) continue;
    EXPECT_EQ(results[rank].status, 2) << "rank " << rank << ": " << results[rank].output;
    EXPECT_THAT(error_in(results[rank].output), says);
    EXPECT_LT(results[rank].seconds, 15) << "rank " << rank;
  }
}

// Of the store: served by rank 0 ("env://"), or a folder (""); and the rank that fails.
class Faults : public ::testing::TestWithParam<std::tuple<const char*, int>> {
 protected:
  const std::string init_ = std::get<0>(GetParam());
  const int victim_ = std::get<1>(GetParam());
  // Where rank 0, which serves the store, is the victim, all that is known is that it does not answer.
  std::string named() const {
    return init_ == "env://" && victim_ == 0 ? "rank 0, which serves tcp://" : str("rank ", victim_, " has");
  }
};
INSTANTIATE_TEST_SUITE_P(Ranks, Faults,
                         ::testing::Combine(::testing::Values("env://", ""),
                                            ::testing::Values(0, kRanks - 1)));

TEST_P(Faults, SIGKILL_within_an_all_reduce) {
  const auto results = run_ranks(
      kRanks,
      [this](int rank) {
        std::thread killer;
        reduce_for_ever([&](int step) {
          if (rank == victim_ && step == 5)
            killer = std::thread([] { std::this_thread::sleep_for(3ms), ::kill(::getpid(), SIGKILL); });
        });
      },
      {.init_method = init_});
  EXPECT_EQ(results[victim_].status, 128 + SIGKILL);
  expect_all_but(victim_, results, AllOf(StartsWith("E-RANK-LOST: all_reduce"), HasSubstr(named())));
}

TEST_P(Faults, an_exception_in_one_rank) {
  const auto results = run_ranks(kRanks,
                                 [this](int rank) {
                                   reduce_for_ever([&](int step) {
                                     if (rank == victim_ && step == 3)
                                       throw std::runtime_error("the disk is full");
                                   });
                                 },
                                 {.init_method = init_});
  EXPECT_EQ(error_in(results[victim_].output), "the disk is full");
  expect_all_but(victim_, results, AllOf(StartsWith("E-RANK-LOST: all_reduce"), HasSubstr(named())));
}

TEST_P(Faults, a_rank_that_stops_responding) {
  const auto results =
      run_ranks(kRanks,
                [this](int rank) {
                  reduce_for_ever([&](int step) {
                    if (rank == victim_ && step == 3) ::raise(SIGSTOP);
                  });
                },
                {.init_method = init_, .environment = {"GRADUS_DISTRIBUTED_SILENCE=2"}, .stuck = victim_});
  expect_all_but(victim_, results, AllOf(StartsWith("E-RANK-LOST: all_reduce"), HasSubstr(named())));
}

TEST_P(Faults, a_rank_that_ends_early_with_exit_0) {
  const auto results = run_ranks(kRanks,
                                 [this](int rank) {
                                   reduce_for_ever([&](int step) {
                                     if (rank == victim_ && step == 3) ::_exit(0);
                                   });
                                 },
                                 {.init_method = init_});
  expect_all_but(victim_, results, AllOf(StartsWith("E-RANK-LOST: all_reduce"), HasSubstr(named())));
}

TEST_P(Faults, a_rank_that_does_not_take_part) {
  const auto results = run_ranks(kRanks,
                                 [this](int rank) {
                                   reduce_for_ever([&](int step) {
                                     if (rank == victim_ && step == 3) std::this_thread::sleep_for(60s);
                                   });
                                 },
                                 {.init_method = init_, .timeout_s = 2, .stuck = victim_});
  expect_all_but(victim_, results,
                 AllOf(StartsWith("E-TIMEOUT: all_reduce sum float32 [1000000] (#4): "),
                       HasSubstr(str("rank ", victim_, " did not take part, the last of rank ", victim_,
                                     " was all_reduce sum float32 [1000000] (#3), within 2 s"))));
}

TEST_P(Faults, a_rank_that_has_fewer_batches) {
  const auto results = run_ranks(kRanks,
                                 [this](int rank) {
                                   reduce_for_ever([&](int step) {
                                     if (rank != victim_ || step < 3) return;
                                     destroy_process_group();
                                     ::_exit(0);
                                   });
                                 },
                                 {.init_method = init_});
  expect_all_but(victim_, results,
                 AllOf(StartsWith("E-COLLECTIVE: all_reduce"),
                       HasSubstr(str("rank ", victim_, " called destroy_process_group() instead"))));
}

struct Mismatch {
  const char* name;
  std::function<void(int)> calls;  // the last collective differs on rank 1
  const char* says;
};

class Mismatches : public ::testing::TestWithParam<Mismatch> {};
INSTANTIATE_TEST_SUITE_P(
    DDP_07, Mismatches,
    ::testing::Values(
        Mismatch{
            "sizes", [](int rank) { all_reduce(zeros({rank == 1 ? 200 : 100})); },
            "rank 0 calls all_reduce sum float32 [100] (#1), rank 1 calls all_reduce sum float32 [200] (#1)"},
        Mismatch{
            "dtypes",
            [](int rank) { all_reduce(zeros({rank == 1 ? 2 : 4}, rank == 1 ? kFloat64 : kFloat32)); },
            "rank 0 calls all_reduce sum float32 [4] (#1), rank 1 calls all_reduce sum float64 [2] (#1)"},
        Mismatch{"rows",
                 [](int rank) {
                   all_gather({zeros({3 + rank}), zeros({3 + rank}), zeros({3 + rank})}, zeros({3 + rank}));
                 },
                 "rank 0 calls all_gather float32 [3] (#1), rank 1 calls all_gather float32 [4] (#1)"},
        Mismatch{
            "collectives", [](int rank) { rank == 1 ? broadcast(zeros({9}), 0) : all_reduce(zeros({9})); },
            "rank 0 calls all_reduce sum float32 [9] (#1), rank 1 calls broadcast root 0 float32 [9] (#1)"},
        Mismatch{
            "roots", [](int rank) { broadcast(zeros({9}), rank == 1 ? 1 : 0); },
            "rank 0 calls broadcast root 0 float32 [9] (#1), rank 1 calls broadcast root 1 float32 [9] (#1)"},
        Mismatch{
            "operations", [](int rank) { all_reduce(zeros({9}), rank == 1 ? ReduceOp::avg : ReduceOp::sum); },
            "rank 0 calls all_reduce sum float32 [9] (#1), rank 1 calls all_reduce avg float32 [9] (#1)"},
        Mismatch{"barriers", [](int rank) { rank == 1 ? barrier() : all_reduce(zeros({9})); },
                 "rank 0 calls all_reduce sum float32 [9] (#1), rank 1 calls barrier (#1)"}),
    [](const auto& info) { return info.param.name; });

TEST_P(Mismatches, are_an_error_on_every_rank_that_names_both_sides) {
  const auto results = run_ranks(kRanks, GetParam().calls);
  expect_all_but(-1, results, AllOf(StartsWith("E-COLLECTIVE: "), HasSubstr(GetParam().says)));
}

TEST(FaultsLater, after_a_failure_every_call_says_why) {
  const auto results = run_ranks(2, [](int rank) {
    EXPECT_GRADUS_ERROR(all_reduce(zeros({rank + 1})), "E-COLLECTIVE", "do not call the same");
    EXPECT_GRADUS_ERROR(barrier(), "E-COLLECTIVE", "barrier (#2): the ranks do not call the same");
    const Work work = broadcast(zeros({1}), 0, /*async_op=*/true);
    EXPECT_GRADUS_ERROR(work.wait(), "E-COLLECTIVE", "broadcast root 0");
    EXPECT_TRUE(work.is_completed());
    EXPECT_TRUE(work.exception());
  });
  for (const RankResult& rank : results) EXPECT_EQ(rank.status, 0) << rank.output;
}

}  // namespace
}  // namespace gradus::distributed
