#include <gradus/base/parallel.h>
#include <gradus/data/dataloader.h>

#include <filesystem>
#include <mutex>
#include <set>

#include "data/samples.h"
#include "support/expect_error.h"

namespace gradus {
namespace {

using namespace testing;
using std::chrono::milliseconds;
using Batches = std::vector<std::vector<int64_t>>;

int thread_count() {
  // The threads of parallel loops stay, once there was one.
  parallel_for(0, 1000, 1, [](int64_t, int64_t) {});
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

TEST(DataLoaderWorkers, an_exception_names_the_index_it_came_from) {
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

TEST(DataLoaderWorkers, an_exception_keeps_its_code_and_hint) {
  const auto bad = std::make_shared<SubsetRandomSampler>(std::vector<int64_t>{99});
  DataLoader loader(TensorDataset(empty({4, 2}, kFloat32)), {.sampler = bad, .num_workers = 1});
  EXPECT_GRADUS_ERROR(loader.begin(), "E-INDEX",
                      "DataLoader worker 0: TensorDataset: index 99 is out of range for 4");
  DataLoader uneven(Numbers(4), {.batch_size = 2, .collate = [](const std::vector<Example>&) -> Example {
                                   GRADUS_FAIL("E-MINE", "no", hint("try another"));
                                 }});
  EXPECT_EQ(error_of([&] { uneven.begin(); }), "E-MINE: DataLoader: no\n  hint: try another");
}

TEST(DataLoaderWorkers, goes_on_with_the_next_epoch_after_an_exception) {
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

TEST(DataLoaderWorkers, an_iterator_is_at_its_end_after_an_exception) {
  DataLoader loader(Faulty(4, 1), {.num_workers = 2});
  auto it = loader.begin();
  EXPECT_THROW(++it, Error);
  EXPECT_TRUE(it == loader.end());
}

TEST(DataLoaderWorkers, leaving_early_loses_nothing_and_leaks_nothing) {
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

TEST(DataLoaderWorkers, an_exception_in_the_loop_body_ends_the_workers) {
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

TEST(DataLoaderWorkers, persistent_workers_are_the_same_threads_each_epoch) {
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

TEST(DataLoaderWorkers, a_new_epoch_of_persistent_workers_ends_the_one_before) {
  DataLoader loader(Numbers(10), {.num_workers = 2, .persistent_workers = true});
  auto first = loader.begin();
  EXPECT_EQ(joined(epoch_of(loader)), range(10));
  EXPECT_GRADUS_ERROR(++first, "E-STATE", "this epoch ended when the next one began");
}

TEST(DataLoaderWorkers, two_epochs_at_a_time_without_persistent_workers) {
  DataLoader loader(Numbers(4), {.num_workers = 2});
  int64_t pairs = 0;
  for (auto& a : loader)
    for (auto& b : loader) pairs += a.data.numel() * b.data.numel();
  EXPECT_EQ(pairs, 16);
}

TEST(DataLoaderWorkers, an_iterator_outlives_its_loader) {
  DataLoader::Iterator it;
  {
    DataLoader loader(Numbers(3), {.num_workers = 2, .persistent_workers = true});
    it = loader.begin();
  }
  EXPECT_EQ(values_of((++it)->data), (std::vector<int64_t>{1}));
}

TEST(DataLoaderWorkers, a_batch_outlives_the_epoch) {
  DataLoader loader(Numbers(3), {.num_workers = 2});
  std::vector<Example> kept;
  for (auto& batch : loader) kept.push_back(batch);
  EXPECT_EQ(values_of(kept[2].data), (std::vector<int64_t>{2}));
}

TEST(DataLoaderWorkers, a_timeout_beyond_the_clock_waits) {
  DataLoader loader(Slow(2, milliseconds(20)), {.num_workers = 1, .timeout = 1e300});
  int64_t batches = 0;
  for (auto& batch : loader) batches += batch.data.size(0);
  EXPECT_EQ(batches, 2);
}

TEST(DataLoaderWorkers, a_batch_that_does_not_come_in_time_is_an_error) {
  DataLoader loader(Slow(4, milliseconds(300)), {.num_workers = 1, .timeout = 0.02});
  const auto start = std::chrono::steady_clock::now();
  EXPECT_GRADUS_ERROR(loader.begin(), "E-TIMEOUT", "worker 0 made no batch within 0.02 s");
  EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(5000));
  DataLoader patient(Slow(2, milliseconds(5)), {.num_workers = 1, .timeout = 60});
  EXPECT_EQ(joined(epoch_of(patient)), range(2));
}

TEST(DataLoaderWorkers, workers_make_no_more_than_they_were_told_ahead) {
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

TEST(DataLoaderWorkers, parallel_loops_in_workers_stay_on_their_thread) {
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

TEST(DataLoaderWorkers, many_epochs) {
  for (bool persistent : {false, true}) {
    DataLoader loader(Numbers(7),
                      {.batch_size = 2, .shuffle = true, .num_workers = 3, .persistent_workers = persistent});
    for (int epoch = 0; epoch < 200; ++epoch) ASSERT_EQ(sorted(joined(epoch_of(loader))), range(7));
  }
}

TEST(DataLoaderWorkers, can_be_moved) {
  DataLoader loader(Numbers(4), {.num_workers = 1, .persistent_workers = true});
  epoch_of(loader);
  DataLoader moved = std::move(loader);
  EXPECT_EQ(joined(epoch_of(moved)), range(4));
}

}  // namespace
}  // namespace gradus
