#include <gradus/base/log.h>
#include <gradus/base/parallel.h>
#include <gradus/base/random.h>
#include <gradus/data/dataloader.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "data/samples.h"
#include "support/expect_error.h"

namespace gradus {
namespace {

using namespace testing;
using std::chrono::milliseconds;
using Batches = std::vector<std::vector<int64_t>>;

int thread_count() {
  return static_cast<int>(std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
}

// A joined thread may stay in /proc for a moment.
bool becomes(const std::function<bool()>& condition) {
  for (int i = 0; i < 2000 && !condition(); ++i) std::this_thread::sleep_for(milliseconds(5));
  return condition();
}
bool thread_count_becomes(int wanted) {
  return becomes([=] { return thread_count() == wanted; });
}

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
  EXPECT_LE(warnings.size(), 1u);
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

TEST(DataLoader, an_exception_names_the_index_it_came_from) {
  for (int workers : {0, 1, 3}) {
    DataLoader loader(Faulty(20, 13), {.batch_size = 2, .num_workers = workers});
    Batches seen;
    const std::string error = error_of([&] {
      for (auto& [data, target] : loader) seen.push_back(values_of(data));
    });
    const std::string who =
        workers == 0 ? "DataLoader: " : "DataLoader worker " + std::to_string(6 % workers) + ": ";
    EXPECT_EQ(error, "E-WORKER: " + who + "sample 13: no such line");
    EXPECT_EQ(joined(seen), range(12)) << "the batches before it are delivered";
  }
}

TEST(DataLoader, an_exception_keeps_its_code_and_hint) {
  const auto bad = std::make_shared<SubsetRandomSampler>(std::vector<int64_t>{99});
  DataLoader loader(TensorDataset(empty({4, 2}, kFloat32)), {.sampler = bad, .num_workers = 1});
  EXPECT_GRADUS_ERROR(loader.begin(), "E-INDEX",
                      "DataLoader worker 0: TensorDataset: index 99 is out of range for 4");
  DataLoader uneven(Numbers(4), {.batch_size = 2, .collate = [](const std::vector<Example>&) -> Example {
                                   GRADUS_FAIL("E-MINE", "no", hint("try another"));
                                 }});
  EXPECT_EQ(error_of([&] { uneven.begin(); }), "E-MINE: DataLoader: no\n  hint: try another");
}

TEST(DataLoader, goes_on_with_the_next_epoch_after_an_exception) {
  for (bool persistent : {false, true}) {
    std::atomic<bool> broken{true};
    DataLoader loader(Numbers(8), {.batch_size = 2,
                                   .num_workers = 2,
                                   .collate =
                                       [&](const std::vector<Example>& samples) {
                                         if (broken) throw std::runtime_error("broken");
                                         return default_collate(samples);
                                       },
                                   .persistent_workers = persistent});
    EXPECT_GRADUS_ERROR(epoch_of(loader), "E-WORKER", "broken");
    broken = false;
    EXPECT_EQ(joined(epoch_of(loader)), range(8));
  }
}

TEST(DataLoader, an_iterator_is_at_its_end_after_an_exception) {
  DataLoader loader(Faulty(4, 1), {.num_workers = 2});
  auto it = loader.begin();
  EXPECT_THROW(++it, Error);
  EXPECT_TRUE(it == loader.end());
}

TEST(DataLoader, leaving_early_loses_nothing_and_leaks_nothing) {
  const int threads = thread_count();
  const int64_t blocks = memory_stats().allocation_count;
  {
    DataLoader loader(Numbers(1000), {.batch_size = 3, .num_workers = 3});
    for (int round = 0; round < 20; ++round) {
      int seen = 0;
      for (auto& [data, target] : loader) {
        EXPECT_EQ(data.data<int64_t>()[0], 3 * seen);
        if (++seen > round) break;
      }
      EXPECT_TRUE(thread_count_becomes(threads)) << "the workers are gone when the loop is left";
    }
    EXPECT_EQ(joined(epoch_of(loader)), range(1000));
  }
  EXPECT_EQ(memory_stats().allocation_count, blocks);
}

TEST(DataLoader, an_exception_in_the_loop_body_ends_the_workers) {
  const int threads = thread_count();
  DataLoader loader(Numbers(100), {.num_workers = 2});
  EXPECT_THROW(
      for (auto& batch
           : loader) {
        (void)batch;
        throw std::runtime_error("body");
      },
      std::runtime_error);
  EXPECT_TRUE(thread_count_becomes(threads));
}

TEST(DataLoader, persistent_workers_are_the_same_threads_each_epoch) {
  const int threads = thread_count();
  {
    std::mutex mutex;
    std::set<std::thread::id> ids;
    DataLoader loader(Numbers(10), {.num_workers = 2,
                                    .collate =
                                        [&](const std::vector<Example>& samples) {
                                          std::lock_guard lock(mutex);
                                          ids.insert(std::this_thread::get_id());
                                          return default_collate(samples);
                                        },
                                    .persistent_workers = true});
    for (int epoch = 0; epoch < 5; ++epoch) EXPECT_EQ(joined(epoch_of(loader)), range(10));
    EXPECT_EQ(ids.size(), 2u);
    EXPECT_TRUE(thread_count_becomes(threads + 2));
  }
  EXPECT_TRUE(thread_count_becomes(threads));
}

TEST(DataLoader, a_new_epoch_of_persistent_workers_ends_the_one_before) {
  DataLoader loader(Numbers(10), {.num_workers = 2, .persistent_workers = true});
  auto first = loader.begin();
  EXPECT_EQ(joined(epoch_of(loader)), range(10));
  EXPECT_GRADUS_ERROR(++first, "E-STATE", "this epoch ended when the next one began");
}

TEST(DataLoader, two_epochs_at_a_time_without_persistent_workers) {
  DataLoader loader(Numbers(4), {.num_workers = 2});
  int64_t pairs = 0;
  for (auto& a : loader)
    for (auto& b : loader) pairs += a.data.numel() * b.data.numel();
  EXPECT_EQ(pairs, 16);
}

TEST(DataLoader, an_iterator_outlives_its_loader) {
  DataLoader::Iterator it;
  {
    DataLoader loader(Numbers(3), {.num_workers = 2, .persistent_workers = true});
    it = loader.begin();
  }
  EXPECT_EQ(values_of((++it)->data), (std::vector<int64_t>{1}));
}

TEST(DataLoader, a_batch_outlives_the_epoch) {
  DataLoader loader(Numbers(3), {.num_workers = 2});
  std::vector<Example> kept;
  for (auto& batch : loader) kept.push_back(batch);
  EXPECT_EQ(values_of(kept[2].data), (std::vector<int64_t>{2}));
}

TEST(DataLoader, a_batch_that_does_not_come_in_time_is_an_error) {
  DataLoader loader(Slow(4, milliseconds(300)), {.num_workers = 1, .timeout = 0.02});
  const auto start = std::chrono::steady_clock::now();
  EXPECT_GRADUS_ERROR(loader.begin(), "E-TIMEOUT", "worker 0 made no batch within 0.02 s");
  EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(5000));
  DataLoader patient(Slow(2, milliseconds(5)), {.num_workers = 1, .timeout = 60});
  EXPECT_EQ(joined(epoch_of(patient)), range(2));
}

TEST(DataLoader, workers_make_no_more_than_they_were_told_ahead) {
  std::atomic<int> made{0};
  DataLoader loader(Numbers(100), {.num_workers = 2,
                                   .collate =
                                       [&](const std::vector<Example>& samples) {
                                         ++made;
                                         return default_collate(samples);
                                       },
                                   .prefetch_factor = 3});
  auto it = loader.begin();
  // The one taken, two full queues of 3, and one more in the hands of each worker.
  EXPECT_TRUE(becomes([&] { return made >= 1 + 6; }));
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_LE(made, 1 + 6 + 2);
}

TEST(DataLoader, parallel_loops_in_workers_stay_on_their_thread) {
  std::atomic<int> elsewhere{0};
  DataLoader loader(Numbers(4), {.num_workers = 2, .collate = [&](const std::vector<Example>& samples) {
                                   const auto me = std::this_thread::get_id();
                                   parallel_for(0, 1000, 1, [&](int64_t, int64_t) {
                                     elsewhere += std::this_thread::get_id() != me;
                                   });
                                   return default_collate(samples);
                                 }});
  epoch_of(loader);
  EXPECT_EQ(elsewhere, 0);
}

TEST(DataLoader, many_epochs) {
  for (bool persistent : {false, true}) {
    DataLoader loader(Numbers(7),
                      {.batch_size = 2, .shuffle = true, .num_workers = 3, .persistent_workers = persistent});
    for (int epoch = 0; epoch < 200; ++epoch) ASSERT_EQ(sorted(joined(epoch_of(loader))), range(7));
  }
}

TEST(DataLoader, can_be_moved) {
  DataLoader loader(Numbers(4), {.num_workers = 1, .persistent_workers = true});
  epoch_of(loader);
  DataLoader moved = std::move(loader);
  EXPECT_EQ(joined(epoch_of(moved)), range(4));
}

}  // namespace
}  // namespace gradus
