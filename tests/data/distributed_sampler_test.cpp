#include <gradus/base/log.h>
#include <gradus/data/dataloader.h>
#include <gradus/data/distributed_sampler.h>

#include <set>

#include "data/samples.h"
#include "support/expect_error.h"

namespace gradus {
namespace {

using namespace testing;
using Shares = std::vector<std::vector<int64_t>>;

// Each rank's share, of an epoch unless it is negative.
Shares shares(int64_t n, int64_t ranks, DistributedSamplerOptions options = {}, int64_t epoch = -1) {
  Shares all;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    DistributedSampler sampler(n, ranks, rank, options);
    if (epoch >= 0) sampler.set_epoch(epoch);
    all.push_back(sampler.order(/*loader_seed=*/static_cast<uint64_t>(100 + rank), 0));
    EXPECT_EQ(static_cast<int64_t>(all.back().size()), sampler.size());
  }
  return all;
}

// The order that was dealt out.
std::vector<int64_t> dealt(const Shares& shares) {
  std::vector<int64_t> order;
  for (size_t i = 0; i < shares[0].size(); ++i)
    for (const auto& share : shares)
      if (i < share.size()) order.push_back(share[i]);
  return order;
}

TEST(DistributedSampler, without_shuffle_the_shares_are_PyTorchs) {
  // list(DistributedSampler(range(n), num_replicas, rank, shuffle=False, drop_last=…)) of PyTorch 2.15
  EXPECT_EQ(shares(7, 3, {.shuffle = false}), (Shares{{0, 3, 6}, {1, 4, 0}, {2, 5, 1}}));
  EXPECT_EQ(shares(7, 3, {.shuffle = false, .drop_last = true}), (Shares{{0, 3}, {1, 4}, {2, 5}}));
  EXPECT_EQ(shares(2, 5, {.shuffle = false}), (Shares{{0}, {1}, {0}, {1}, {0}}));
  EXPECT_EQ(shares(2, 5, {.shuffle = false, .drop_last = true}), (Shares{{}, {}, {}, {}, {}}));
  EXPECT_EQ(shares(6, 2, {.shuffle = false}), (Shares{{0, 2, 4}, {1, 3, 5}}));
}

TEST(DistributedSampler, shares_cover_all_and_padding_repeats_from_the_start) {
  for (int64_t n : {0, 1, 5, 12, 100})
    for (int64_t ranks : {1, 2, 3, 4, 7}) {
      const Shares all = shares(n, ranks);
      const int64_t padding = n == 0 ? 0 : (ranks - n % ranks) % ranks;
      EXPECT_EQ(DistributedSampler(n, ranks, 0).padding(), padding);
      const std::vector<int64_t> order = dealt(all);
      ASSERT_EQ(static_cast<int64_t>(order.size()), n + padding) << n << " over " << ranks;
      EXPECT_EQ(sorted(std::vector<int64_t>(order.begin(), order.begin() + n)), range(n));
      for (int64_t i = n; i < n + padding; ++i)
        EXPECT_EQ(order[static_cast<size_t>(i)], order[static_cast<size_t>(i % n)]);
      for (const auto& share : all) EXPECT_EQ(share.size(), all[0].size());
    }
}

TEST(DistributedSampler, drop_last_leaves_out_the_end_of_the_order) {
  for (int64_t ranks : {2, 3, 4}) {
    std::vector<int64_t> whole = RandomSampler(11).order(0, 0);
    whole.resize(static_cast<size_t>(11 - 11 % ranks));
    EXPECT_EQ(dealt(shares(11, ranks, {.drop_last = true})), whole);
    EXPECT_EQ(DistributedSampler(11, ranks, 0, {.drop_last = true}).padding(), 0);
  }
}

TEST(DistributedSampler, evaluation_without_padding_counts_each_sample_once) {
  for (int64_t n : {0, 1, 5, 12, 101})
    for (int64_t ranks : {1, 2, 3, 4, 7}) {
      const Shares all = shares(n, ranks, {.shuffle = false, .pad = false});
      EXPECT_EQ(sorted(joined(all)), range(n)) << n << " over " << ranks;
      EXPECT_LE(all.front().size() - all.back().size(), 1u);
    }
  // Sample i is worth i: the sum over all ranks and the number of samples are those of one process.
  int64_t sum = 0, count = 0;
  for (int64_t rank = 0; rank < 3; ++rank) {
    const auto share = std::make_shared<DistributedSampler>(
        10, 3, rank, DistributedSamplerOptions{.shuffle = false, .pad = false});
    DataLoader loader(Numbers(10), {.batch_size = 2, .sampler = share});
    for (auto& [data, target] : loader) {
      for (const int64_t value : values_of(data)) sum += value;
      count += data.numel();
    }
  }
  EXPECT_EQ(sum, 45);
  EXPECT_EQ(count, 10);
}

TEST(DistributedSampler, ranks_together_are_one_process_on_the_joined_batch) {
  for (int64_t epoch : {0, 1, 5})
    EXPECT_EQ(dealt(shares(12, 3, {.seed = 7}, epoch)), RandomSampler(12).order(7, epoch)) << epoch;
  EXPECT_NE(shares(12, 3, {.seed = 7}), shares(12, 3, {.seed = 8}));
}

TEST(DistributedSampler, DDP_01_the_order_changes_with_set_epoch_alone) {
  std::vector<std::string> warnings;
  const WarningHandler before =
      set_warning_handler([&](const std::string& text) { warnings.push_back(text); });
  const auto sampler = std::make_shared<DistributedSampler>(6, 2, 0);
  DataLoader loader(Numbers(6), {.batch_size = 3, .sampler = sampler, .seed = 9});
  const auto first = epoch_of(loader);
  EXPECT_TRUE(warnings.empty());
  for (int epoch = 1; epoch < 3; ++epoch) EXPECT_EQ(epoch_of(loader), first);
  EXPECT_EQ(warnings,
            (std::vector<std::string>{"DistributedSampler: the loader's epoch 1 has the same order as its "
                                      "epoch 0; call set_epoch() before each epoch to shuffle anew"}));
  warnings.clear();

  const auto advanced = std::make_shared<DistributedSampler>(6, 2, 0);
  DataLoader shuffled(Numbers(6), {.batch_size = 3, .sampler = advanced});
  std::set<std::vector<int64_t>> orders;
  for (int64_t epoch = 0; epoch < 4; ++epoch) {
    advanced->set_epoch(epoch);
    EXPECT_EQ(advanced->epoch(), epoch);
    orders.insert(joined(epoch_of(shuffled)));
    const Shares all = shares(6, 2, {}, epoch);
    EXPECT_EQ(sorted(joined(all)), range(6)) << "disjoint, and all of them";
  }
  EXPECT_EQ(orders.size(), 4u);

  DataLoader plain(Numbers(6), {.sampler = std::make_shared<DistributedSampler>(
                                    6, 2, 0, DistributedSamplerOptions{.shuffle = false})});
  for (int epoch = 0; epoch < 2; ++epoch) epoch_of(plain);
  EXPECT_TRUE(warnings.empty()) << "set_epoch() was called, or there is no shuffle";
  set_warning_handler(before);
}

TEST(DistributedSampler, bad_arguments) {
  EXPECT_GRADUS_ERROR(DistributedSampler(-1, 2, 0), "E-ARG", "the size must not be negative, got -1");
  EXPECT_GRADUS_ERROR(DistributedSampler(4, 0, 0), "E-ARG", "num_replicas must be at least 1, got 0");
  EXPECT_GRADUS_ERROR(DistributedSampler(4, 2, 2), "E-ARG", "rank must be 0 to 1 with num_replicas 2, got 2");
  EXPECT_GRADUS_ERROR(DistributedSampler(4, 2, -1), "E-ARG", "got -1");
  EXPECT_GRADUS_ERROR(DistributedSampler(4, 2, 0, {.drop_last = true, .pad = false}), "E-ARG",
                      "drop_last makes the shares equal, and without pad they are not");
  EXPECT_GRADUS_ERROR(DistributedSampler(4, 2, 0).set_epoch(-1), "E-ARG", "must not be negative, got -1");
}

}  // namespace
}  // namespace gradus
