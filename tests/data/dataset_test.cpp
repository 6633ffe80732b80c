#include <gradus/data/dataset.h>
#include <gradus/data/running_mean.h>
#include <gradus/data/sampler.h>

#include <cmath>
#include <limits>
#include <set>

#include "data/samples.h"
#include "support/expect_error.h"
#include "support/tensors.h"

namespace gradus {
namespace {

using namespace testing;

// Sample i is the row {3 i, 3 i + 1, 3 i + 2}, its target 10 i.
std::shared_ptr<TensorDataset> rows(int64_t n) {
  Tensor data = empty({n, 3}, kFloat32), target = empty({n}, kInt64);
  for (int64_t i = 0; i < 3 * n; ++i) data.data<float>()[i] = static_cast<float>(i);
  for (int64_t i = 0; i < n; ++i) target.data<int64_t>()[i] = 10 * i;
  return std::make_shared<TensorDataset>(data, target);
}

std::vector<float> floats(const Tensor& t) { return {t.data<float>(), t.data<float>() + t.numel()}; }

Example batch(const Dataset& dataset, const std::vector<int64_t>& indices) {
  BatchRequest request;
  request.indices = indices;
  return dataset.get_batch(request);
}

TEST(TensorDataset, gives_rows_and_batches_of_rows) {
  const auto dataset = rows(4);
  EXPECT_EQ(dataset->size(), 4);
  const Example one = dataset->get(2);
  EXPECT_EQ(one.data.sizes(), Shape{3});
  EXPECT_EQ(floats(one.data), (std::vector<float>{6, 7, 8}));
  EXPECT_EQ(one.target.sizes(), Shape{});
  const Example two = batch(*dataset, {3, 0});
  EXPECT_EQ(two.data.sizes(), (Shape{2, 3}));
  EXPECT_EQ(floats(two.data), (std::vector<float>{9, 10, 11, 0, 1, 2}));
  EXPECT_EQ(values_of(two.target), (std::vector<int64_t>{30, 0}));
}

TEST(TensorDataset, the_batch_is_what_its_samples_collate_to) {
  const auto dataset = rows(5);
  const Example fast = batch(*dataset, {4, 1, 1}),
                slow = dataset->Dataset::get_batch({std::vector<int64_t>{4, 1, 1}});
  EXPECT_EQ(fast.data.sizes(), slow.data.sizes());
  EXPECT_EQ(floats(fast.data), floats(slow.data));
  EXPECT_EQ(values_of(fast.target), values_of(slow.target));
}

TEST(TensorDataset, refuses_what_does_not_fit) {
  EXPECT_GRADUS_ERROR(TensorDataset(empty({3, 2}, kFloat32), empty({2}, kInt64)), "E-SHAPE",
                      "3 samples, but 2 targets");
  EXPECT_GRADUS_ERROR(TensorDataset(empty({}, kFloat32)), "E-SHAPE", "first dimension");
  EXPECT_GRADUS_ERROR(TensorDataset(elsewhere()), "E-DEVICE", "expected a tensor on cpu, got one on sim:0");
  EXPECT_GRADUS_ERROR(rows(3)->get(3), "E-INDEX", "index 3 is out of range for 3 samples");
  EXPECT_GRADUS_ERROR(rows(3)->get(-1), "E-INDEX", "index -1");
  EXPECT_GRADUS_ERROR(batch(*rows(3), {0, 7}), "E-INDEX", "index 7");
}

TEST(TensorDataset, takes_tensors_of_any_strides_and_without_target) {
  Tensor data = empty({2, 3}, kFloat32);
  for (int i = 0; i < 6; ++i) data.data<float>()[i] = static_cast<float>(i);
  const TensorDataset dataset(data.transpose(0, 1));
  EXPECT_EQ(floats(batch(dataset, {2}).data), (std::vector<float>{2, 5}));
  EXPECT_FALSE(batch(dataset, {2}).target.defined());
  EXPECT_FALSE(dataset.get(0).target.defined());
}

TEST(Collate, joins_samples_and_names_the_odd_one) {
  const auto sample = [](const Shape& sizes, DType dtype) { return Example{empty(sizes, dtype), {}}; };
  EXPECT_EQ(default_collate({sample({2, 0}, kBool), sample({2, 0}, kBool)}).data.sizes(), (Shape{2, 2, 0}));
  EXPECT_GRADUS_ERROR(default_collate({sample({2}, kBool), sample({3}, kBool)}), "E-SHAPE",
                      "sample 1 has shape [3], the first has [2]");
  EXPECT_GRADUS_ERROR(default_collate({sample({2}, kBool), sample({2}, kUInt8)}), "E-DTYPE",
                      "sample 1 is uint8, the first is bool");
  EXPECT_GRADUS_ERROR(default_collate({}), "E-ARG", "at least one sample");
}

TEST(Subset, picks_samples_of_the_whole) {
  const Subset subset(rows(5), {4, 2});
  EXPECT_EQ(subset.size(), 2);
  EXPECT_EQ(floats(subset.get(0).data), (std::vector<float>{12, 13, 14}));
  EXPECT_EQ(values_of(batch(subset, {1, 0}).target), (std::vector<int64_t>{20, 40}));
  EXPECT_GRADUS_ERROR(subset.get(2), "E-INDEX", "Subset: index 2 is out of range for 2 samples");
  EXPECT_GRADUS_ERROR(Subset(rows(5), {5}), "E-INDEX", "Subset: index 5 is out of range for 5 samples");
  EXPECT_GRADUS_ERROR(Subset(nullptr, {}), "E-ARG", "Subset: the dataset is null");
}

TEST(RandomSplit, parts_do_not_overlap_and_depend_on_the_seed) {
  const auto parts = random_split(rows(10), {7, 3}, 1);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0]->size(), 7);
  std::vector<int64_t> all = parts[0]->indices();
  all.insert(all.end(), parts[1]->indices().begin(), parts[1]->indices().end());
  EXPECT_EQ(sorted(all), range(10));
  EXPECT_NE(all, range(10));
  EXPECT_EQ(random_split(rows(10), {7, 3}, 1)[0]->indices(), parts[0]->indices());
  EXPECT_NE(random_split(rows(10), {7, 3}, 2)[0]->indices(), parts[0]->indices());
  EXPECT_GRADUS_ERROR(random_split(rows(10), {7, 2}), "E-ARG", "add up to 9, but the dataset has 10");
  EXPECT_GRADUS_ERROR(random_split(rows(10), {11, -1}), "E-ARG", "must not be negative, got -1");
  constexpr int64_t most = std::numeric_limits<int64_t>::max();  // twice this and 12 wrap around to 10
  EXPECT_GRADUS_ERROR(random_split(rows(10), {most, most, 12}), "E-ARG", "more than 64 bits hold");
  EXPECT_GRADUS_ERROR(random_split(nullptr, {}), "E-ARG", "random_split: the dataset is null");
}

TEST(Sampler, orders_depend_on_seed_and_epoch_alone) {
  EXPECT_EQ(SequentialSampler(4).order(1, 2), range(4));
  const RandomSampler random(100);
  EXPECT_EQ(sorted(random.order(1, 0)), range(100));
  EXPECT_EQ(random.order(1, 0), RandomSampler(100).order(1, 0));
  std::set<std::vector<int64_t>> orders;
  for (uint64_t seed : {0, 1})
    for (int64_t epoch : {0, 1, 2}) orders.insert(random.order(seed, epoch));
  EXPECT_EQ(orders.size(), 6u);
}

TEST(Sampler, the_shuffle_is_fair) {
  std::vector<int> first(5);
  for (int64_t epoch = 0; epoch < 5000; ++epoch)
    ++first[static_cast<size_t>(RandomSampler(5).order(3, epoch)[0])];
  for (int count : first) EXPECT_NEAR(count, 1000, 150);  // 5 sigma
}

TEST(Sampler, with_replacement_and_subsets) {
  const std::vector<int64_t> draws = RandomSampler(10, true, 1000).order(0, 0);
  EXPECT_EQ(draws.size(), 1000u);
  EXPECT_EQ(std::set<int64_t>(draws.begin(), draws.end()).size(), 10u);
  EXPECT_EQ(RandomSampler(10, false, 4).order(0, 0).size(), 4u);
  EXPECT_GRADUS_ERROR(RandomSampler(10, false, 11), "E-ARG", "11 samples of 10 need replacement");
  EXPECT_GRADUS_ERROR(RandomSampler(0, true, 5), "E-ARG", "at least one");
  EXPECT_EQ(sorted(SubsetRandomSampler({7, 3, 5}).order(0, 0)), (std::vector<int64_t>{3, 5, 7}));
}

TEST(Sampler, batches) {
  const auto sampler = std::make_shared<SequentialSampler>(5);
  using Batches = std::vector<std::vector<int64_t>>;
  EXPECT_EQ(BatchSampler(sampler, 2, false).batches(0, 0), (Batches{{0, 1}, {2, 3}, {4}}));
  EXPECT_EQ(BatchSampler(sampler, 2, false).size(), 3);
  EXPECT_EQ(BatchSampler(sampler, 2, true).batches(0, 0), (Batches{{0, 1}, {2, 3}}));
  EXPECT_EQ(BatchSampler(sampler, 2, true).size(), 2);
  EXPECT_GRADUS_ERROR(BatchSampler(nullptr, 1, true), "E-ARG", "BatchSampler: the sampler is null");
  EXPECT_GRADUS_ERROR(SequentialSampler(-5), "E-ARG", "must not be negative, got -5");
  EXPECT_GRADUS_ERROR(BatchSampler(sampler, 0, true), "E-ARG", "batch_size must be at least 1, got 0");
}

TEST(RunningMean, LDR_09_weighs_batches_by_their_samples) {
  RunningMean loss, accuracy;
  loss.add(1, 2), loss.add(1, 2), loss.add(4, 1);
  EXPECT_DOUBLE_EQ(loss.value(), 1.6);
  EXPECT_EQ(loss.samples(), 5);
  DataLoader loader(
      Numbers(10),
      {.batch_size = 2, .sampler = std::make_shared<SubsetRandomSampler>(std::vector<int64_t>{1, 4, 7})});
  for (auto& [data, target] : loader) accuracy.add(1.0, data.size(0));
  EXPECT_DOUBLE_EQ(accuracy.value(), 1.0) << "3 of 3, not 3 of 10";
  EXPECT_TRUE(std::isnan(RunningMean().value()));
}

}  // namespace
}  // namespace gradus
