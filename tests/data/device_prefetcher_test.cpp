#include <gradus/data/device_prefetcher.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/factories.h>
#include <gradus/runtime/block_pool.h>
#include <gradus/runtime/device_stats.h>
#include <support/expect_error.h>
#include <support/held.h>

#include <algorithm>

#include "data/samples.h"

namespace gradus {
namespace {

using namespace testing;
using Batches = std::vector<std::vector<int64_t>>;

const Device kSim(DeviceType::sim);

template <class Batches_>
Batches on_host(Batches_&& batches, Device device) {
  Batches out;
  for (auto& [data, target] : batches) {
    EXPECT_EQ(data.device(), device);
    EXPECT_EQ(target.device(), device);
    out.push_back(data.template to_vector<int64_t>());
    const std::vector<int64_t> targets = target.template to_vector<int64_t>();
    for (size_t i = 0; i < targets.size(); ++i) EXPECT_EQ(targets[i], 10 * out.back()[i]);
  }
  return out;
}

TEST(DevicePrefetcher, gives_the_loader_s_batches_in_its_order) {
  for (const Device device : {Device(), kSim, Device("sim:1")})
    for (const int workers : {0, 2})
      for (const bool pin : {false, true}) {
        const DataLoaderOptions options{
            .batch_size = 4, .shuffle = true, .num_workers = workers, .pin_memory = pin, .seed = 5};
        DataLoader plain(Numbers(30), options), loader(Numbers(30), options);
        DevicePrefetcher prefetcher(loader, device);
        EXPECT_EQ(prefetcher.size(), 8);
        for (int epoch = 0; epoch < 2; ++epoch)
          EXPECT_EQ(on_host(prefetcher, device), on_host(plain, Device()));
      }
}

TEST(DevicePrefetcher, edges) {
  for (const Device device : {Device(), kSim}) {
    DataLoader none(Numbers(0), {.batch_size = 4}), one(Numbers(3), {.batch_size = 4});
    EXPECT_TRUE(on_host(DevicePrefetcher(none, device), device).empty());
    EXPECT_EQ(on_host(DevicePrefetcher(one, device), device), (Batches{{0, 1, 2}}));
    DataLoader stream(NumberStream(5, true), {.batch_size = 2});
    for (auto& [data, target] : DevicePrefetcher(stream, device)) EXPECT_FALSE(target.defined());
  }
  DataLoader loader(Numbers(3));
  EXPECT_GRADUS_ERROR(DevicePrefetcher(loader, "sim:100"), "E-DEVICE-ORDINAL", "sim:100");
}

TEST(DevicePrefetcher, the_host_waits_for_no_copy) {
  for (const bool pin : {false, true}) {
    DataLoader loader(Numbers(20), {.batch_size = 4, .pin_memory = pin});
    const Stats before = stats(kSim);
    for (auto& [data, target] : DevicePrefetcher(loader, kSim)) data + target;
    const Stats used = stats(kSim) - before;
    EXPECT_EQ(used.synchronizations, 0);
    EXPECT_EQ(used.copies_h2d, 10);
    EXPECT_EQ(used.bytes_h2d, 20 * 2 * 8);
    EXPECT_EQ(used.copies_d2h, 0);
  }
}

/// Counts the samples that were asked for.
class Counted : public Numbers {
 public:
  using Numbers::Numbers;
  Example get(int64_t i) const override {
    ++asked;
    return Numbers::get(i);
  }
  mutable std::atomic<int> asked{0};
};

TEST(DevicePrefetcher, the_next_batch_is_copied_while_the_current_one_is_used) {
  const auto dataset = std::make_shared<Counted>(6);
  DataLoader loader(dataset, {.batch_size = 2, .pin_memory = true});
  Stats before = stats(kSim);
  auto prefetcher = DevicePrefetcher(loader, kSim);
  auto batch = prefetcher.begin();
  for (int k = 1; k <= 3; ++k, ++batch) {
    EXPECT_EQ(dataset->asked, std::min(2 * (k + 1), 6));
    EXPECT_EQ((stats(kSim) - before).copies_h2d, std::min(2 * (k + 1), 6));
  }
  EXPECT_TRUE(batch == prefetcher.end());
}

// The stream whose memory a tensor is in.
Stream stream_of(const Tensor& x) {
  return {x.device(), x.impl()->storage->allocation().block->pool->stream};
}

TEST(DevicePrefetcher, copies_do_not_wait_for_the_consumer) {
  DataLoader loader(Numbers(8), {.batch_size = 4, .pin_memory = true});
  DevicePrefetcher prefetcher(loader, kSim);
  Tensor sum = zeros({4}, kInt64, kSim);
  Held held(Stream{kSim});
  for (auto& [data, target] : prefetcher) {
    sum.add_(data);
    ASSERT_NE(stream_of(data).id, 0);
    stream_of(data).synchronize();  // this batch is there, and the next
  }
  held.let_go();
  EXPECT_EQ(sum.to_vector<int64_t>(), (std::vector<int64_t>{4, 6, 8, 10}));
}

// Under the race detector, and with tasks that start late: a missing event, or memory that is used again too
// early, shows.
TEST(DevicePrefetcher, batches_are_safe_on_any_stream_of_the_consumer) {
  const sim::OptionsGuard late([](auto& o) { o.jitter_us = 200; });
  for (const Stream& consumer : {Stream{kSim}, Stream::create(kSim)}) {
    const StreamGuard guard(consumer);
    DataLoader loader(Numbers(400), {.batch_size = 8, .num_workers = 2, .pin_memory = true});
    DevicePrefetcher prefetcher(loader, kSim);
    Tensor sum = zeros({8}, kInt64, kSim);
    for (auto& [data, target] : prefetcher) sum.add_(data + target);
    // Of column i: 11 * (i + (i + 8) + … + (i + 392)).
    const std::vector<int64_t> sums = sum.to_vector<int64_t>();
    for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(sums[static_cast<size_t>(i)], 11 * (50 * i + 8 * 1225));
  }
}

TEST(DevicePrefetcher, an_exception_comes_in_its_turn) {
  for (const Device device : {Device(), kSim})
    for (const int workers : {0, 2}) {
      DataLoader loader(Faulty(10, 5), {.batch_size = 2, .num_workers = workers});
      DevicePrefetcher prefetcher(loader, device);
      auto batch = prefetcher.begin();
      EXPECT_EQ(batch->data.to_vector<int64_t>(), (std::vector<int64_t>{0, 1}));
      ++batch;
      EXPECT_EQ(batch->data.to_vector<int64_t>(), (std::vector<int64_t>{2, 3}));
      EXPECT_THAT(error_of([&] { ++batch; }), ::testing::HasSubstr("no such line"));
    }
}

TEST(DevicePrefetcher, leaving_early_is_safe) {
  synchronize(kSim);
  const int64_t before = memory_allocated(kSim);
  {
    DataLoader loader(Numbers(100), {.batch_size = 4, .num_workers = 2, .pin_memory = true});
    DevicePrefetcher prefetcher(loader, kSim);
    for (int round = 0; round < 3; ++round)
      for (auto& [data, target] : prefetcher) {
        EXPECT_EQ(data.to_vector<int64_t>(), range(4));
        break;
      }
    EXPECT_EQ(on_host(prefetcher, kSim).size(), 25u);
  }
  EXPECT_EQ(memory_allocated(kSim), before);
}

}  // namespace
}  // namespace gradus
