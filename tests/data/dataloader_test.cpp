#include <gradus/base/log.h>
#include <gradus/base/random.h>
#include <gradus/data/dataloader.h>

#include <cmath>

#include "data/samples.h"
#include "support/expect_error.h"

namespace gradus {
namespace {

using namespace testing;
using Batches = std::vector<std::vector<int64_t>>;

std::vector<size_t> sizes_of(const Batches& batches) {
  std::vector<size_t> sizes;
  for (const auto& batch : batches) sizes.push_back(batch.size());
  return sizes;
}

TEST(DataLoader, gives_batches_in_order) {
  for (int workers : {0, 1, 2, 7}) {
    DataLoader loader(Numbers(10), {.batch_size = 4, .num_workers = workers});
    EXPECT_EQ(loader.size(), 3);
    EXPECT_EQ(epoch_of(loader), (Batches{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}})) << workers;
  }
}

TEST(DataLoader, data_and_targets_stay_together) {
  DataLoader loader(Numbers(50), {.batch_size = 8, .shuffle = true, .num_workers = 2, .seed = 1});
  for (auto& [data, target] : loader)
    for (int64_t i = 0; i < data.numel(); ++i)
      EXPECT_EQ(target.data<int64_t>()[i], 10 * data.data<int64_t>()[i]);
}

TEST(DataLoader, edges) {
  for (int workers : {0, 3}) {
    DataLoader none(Numbers(0), {.batch_size = 4, .num_workers = workers});
    EXPECT_EQ(none.size(), 0);
    EXPECT_TRUE(epoch_of(none).empty());
    DataLoader big(Numbers(3), {.batch_size = 100, .num_workers = workers});
    EXPECT_EQ(epoch_of(big), (Batches{{0, 1, 2}}));
    DataLoader dropped(Numbers(3), {.batch_size = 100, .num_workers = workers, .drop_last = true});
    EXPECT_EQ(dropped.size(), 0);
    EXPECT_TRUE(epoch_of(dropped).empty());
    DataLoader even(Numbers(10), {.batch_size = 4, .num_workers = workers, .drop_last = true});
    EXPECT_EQ(sizes_of(epoch_of(even)), (std::vector<size_t>{4, 4}));
    DataLoader single(Numbers(3), {.num_workers = workers});
    EXPECT_EQ(epoch_of(single), (Batches{{0}, {1}, {2}}));
  }
}

TEST(DataLoader, samplers_and_collate) {
  const auto odd = std::make_shared<SubsetRandomSampler>(std::vector<int64_t>{1, 3, 5});
  DataLoader sampled(Numbers(10), {.batch_size = 2, .sampler = odd, .num_workers = 2});
  EXPECT_EQ(sampled.size(), 2);
  EXPECT_EQ(sorted(joined(epoch_of(sampled))), (std::vector<int64_t>{1, 3, 5}));
  const auto pairs = std::make_shared<BatchSampler>(std::make_shared<SequentialSampler>(4), 2, false);
  DataLoader batched(Numbers(10), {.batch_sampler = pairs});
  EXPECT_EQ(epoch_of(batched), (Batches{{0, 1}, {2, 3}}));
  DataLoader summed(Numbers(6),
                    {.batch_size = 3, .num_workers = 2, .collate = [](const std::vector<Example>& samples) {
                       int64_t sum = 0;
                       for (const Example& s : samples) sum += s.data.data<int64_t>()[0];
                       return Example{scalar_of(sum), {}};
                     }});
  EXPECT_EQ(epoch_of(summed), (Batches{{3}, {12}}));
}

TEST(DataLoader, batches_in_pinned_memory) {
  for (const int workers : {0, 2})
    for (const bool pin : {false, true}) {
      DataLoader loader(Numbers(10), {.batch_size = 4, .num_workers = workers, .pin_memory = pin});
      int64_t next = 0;
      for (auto& [data, target] : loader) {
        EXPECT_EQ(data.is_pinned(), pin);
        EXPECT_EQ(target.is_pinned(), pin);
        for (const int64_t value : values_of(data)) EXPECT_EQ(value, next++);
      }
      EXPECT_EQ(next, 10);
      DataLoader without_targets(NumberStream(3, true), {.num_workers = workers, .pin_memory = pin});
      for (auto& [data, target] : without_targets) EXPECT_FALSE(target.defined());
    }
}

TEST(DataLoader, LDR_01_two_epochs_with_persistent_workers_and_pinning) {
  std::vector<std::string> warnings;
  const WarningHandler before =
      set_warning_handler([&](const std::string& text) { warnings.push_back(text); });
  DataLoader loader(Numbers(10),
                    {.batch_size = 4, .num_workers = 2, .pin_memory = true, .persistent_workers = true});
  for (int epoch = 0; epoch < 2; ++epoch) {
    const Batches batches = epoch_of(loader);
    EXPECT_EQ(sizes_of(batches), (std::vector<size_t>{4, 4, 2}));
    EXPECT_EQ(joined(batches), range(10));
  }
  for (auto& [data, target] : loader) {
    EXPECT_EQ(values_of(data), range(4));
    break;
  }
  EXPECT_EQ(joined(epoch_of(loader)), range(10)) << "nothing is left over from the epoch that was cut short";
  EXPECT_EQ(warnings.size(), 0u);
  set_warning_handler(before);
}

TEST(DataLoader, LDR_03_options_that_conflict) {
  const auto with = [](DataLoaderOptions options) { return [options] { DataLoader(Numbers(4), options); }; };
  EXPECT_GRADUS_ERROR(with({.persistent_workers = true})(), "E-ARG",
                      "persistent_workers needs workers, but num_workers is 0");
  EXPECT_GRADUS_ERROR(with({.prefetch_factor = 4})(), "E-ARG",
                      "prefetch_factor needs workers, but num_workers is 0");
  EXPECT_GRADUS_ERROR(with({.timeout = 1})(), "E-ARG", "timeout needs workers");
  EXPECT_GRADUS_ERROR(with({.batch_size = 0})(), "E-ARG", "batch_size must be at least 1, got 0");
  EXPECT_GRADUS_ERROR(with({.timeout = -1})(), "E-ARG", "timeout must be a number of seconds from 0, got -1");
  EXPECT_GRADUS_ERROR(with({.num_workers = 1, .timeout = std::nan("")})(), "E-ARG", "timeout");
  EXPECT_GRADUS_ERROR(with({.num_workers = -1})(), "E-ARG", "num_workers must not be negative, got -1");
  EXPECT_GRADUS_ERROR(with({.num_workers = 1, .prefetch_factor = 0})(), "E-ARG",
                      "prefetch_factor must be at least 1, got 0");
  const auto sampler = std::make_shared<SequentialSampler>(4);
  EXPECT_GRADUS_ERROR(with({.shuffle = true, .sampler = sampler})(), "E-ARG",
                      "sampler and shuffle exclude each other");
  const auto batches = std::make_shared<BatchSampler>(sampler, 2, false);
  EXPECT_GRADUS_ERROR(with({.batch_size = 2, .batch_sampler = batches})(), "E-ARG", "batch_sampler excludes");
  EXPECT_GRADUS_ERROR(DataLoader(std::shared_ptr<const Dataset>()), "E-ARG", "the dataset is null");
  with({.num_workers = 0})();  // the defaults are fine
}

TEST(DataLoader, LDR_05_the_order_depends_on_the_seed_alone) {
  const auto run = [](int workers, uint64_t seed) {
    DataLoader loader(Numbers(8), {.batch_size = 4, .shuffle = true, .num_workers = workers, .seed = seed});
    return std::pair(epoch_of(loader), epoch_of(loader));
  };
  const auto expected = run(0, 0);
  EXPECT_NE(expected.first, expected.second) << "epochs differ";
  EXPECT_EQ(sorted(joined(expected.first)), range(8));
  for (int workers : {1, 2, 4}) EXPECT_EQ(run(workers, 0), expected);
  EXPECT_NE(run(0, 1), expected);
}

TEST(DataLoader, LDR_05_iterating_draws_nothing_from_the_default_generator) {
  for (bool shuffle : {false, true}) {
    for (int workers : {0, 2}) {
      manual_seed(0);
      const auto untouched = default_generator().get_state();
      DataLoader loader(Numbers(8), {.batch_size = 4, .shuffle = shuffle, .num_workers = workers});
      epoch_of(loader);
      EXPECT_EQ(default_generator().get_state(), untouched);
    }
  }
}

TEST(DataLoader, the_default_seed_is_the_default_generators) {
  manual_seed(5);
  DataLoader loader(Numbers(8), {.shuffle = true}), seeded(Numbers(8), {.shuffle = true, .seed = 5});
  EXPECT_EQ(loader.seed(), 5u);
  EXPECT_EQ(epoch_of(loader), epoch_of(seeded));
}

TEST(DataLoader, an_epoch_can_be_resumed_by_its_number) {
  DataLoader straight(Numbers(20), {.shuffle = true, .seed = 3}),
      resumed(Numbers(20), {.shuffle = true, .seed = 3});
  epoch_of(straight), epoch_of(straight);
  EXPECT_EQ(straight.epoch(), 2);
  resumed.set_epoch(2);
  EXPECT_EQ(epoch_of(resumed), epoch_of(straight));
}

Batches stream_batches(bool sharded, int workers, std::vector<std::string>* warnings = nullptr) {
  const WarningHandler before = set_warning_handler([=](const std::string& text) {
    if (warnings) warnings->push_back(text);
  });
  DataLoader loader(NumberStream(10, sharded), {.batch_size = 2, .num_workers = workers});
  set_warning_handler(before);
  return epoch_of(loader);
}

TEST(DataLoader, LDR_07_a_stream_comes_once_per_worker_unless_it_is_sharded) {
  std::vector<std::string> warnings;
  const Batches repeated = stream_batches(false, 4, &warnings);
  EXPECT_EQ(repeated.size(), 20u);
  EXPECT_EQ(joined(repeated).size(), 40u);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], ::testing::HasSubstr("every sample comes 4 times"));

  warnings.clear();
  const Batches sharded = stream_batches(true, 4, &warnings);
  EXPECT_EQ(sorted(joined(sharded)), range(10));
  EXPECT_EQ(sorted(sizes_of(sharded)), (std::vector<size_t>{1, 1, 2, 2, 2, 2}));
  EXPECT_EQ(sharded, stream_batches(true, 4)) << "the order is the same each time";
  EXPECT_TRUE(warnings.empty());

  EXPECT_EQ(stream_batches(false, 0), (Batches{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}}));
  EXPECT_EQ(stream_batches(true, 0).size(), 5u);
}

TEST(DataLoader, streams_have_no_length_and_no_samplers) {
  DataLoader loader(NumberStream(10, true), {.batch_size = 4, .drop_last = true});
  EXPECT_GRADUS_ERROR(loader.size(), "E-ARG", "not known");
  EXPECT_EQ(epoch_of(loader), (Batches{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_GRADUS_ERROR(DataLoader(NumberStream(10, true), {.shuffle = true}), "E-ARG", "sets its own order");
}

}  // namespace
}  // namespace gradus
