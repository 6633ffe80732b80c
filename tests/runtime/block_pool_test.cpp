#include <gradus/runtime/block_pool.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

namespace gradus::runtime {
namespace {

TEST(BlockPool, agrees_with_a_sorted_set) {
  std::mt19937_64 random(1);
  BlockPool pool(0);
  std::vector<Block> blocks(500);
  std::multiset<size_t> reference;
  EXPECT_EQ(pool.best_fit(kBlockUnit), nullptr);
  EXPECT_EQ(pool.largest(), 0u);
  for (int step = 0; step < 200'000; ++step) {
    Block& block = blocks[random() % blocks.size()];
    if (block.is_free) {
      pool.remove(&block);
      reference.erase(reference.find(block.size));
    } else {
      block.size =
          kBlockUnit * (1 + (random() >> (24 + random() % 38)));  // 512 B to 2^49 B, all scales alike
      pool.insert(&block);
      reference.insert(block.size);
    }
    const size_t wanted = kBlockUnit * (1 + (random() >> (24 + random() % 38)));
    const Block* found = pool.best_fit(wanted);
    const auto expected = reference.lower_bound(wanted);
    ASSERT_EQ(found == nullptr, expected == reference.end());
    if (found) {
      ASSERT_EQ(found->size, *expected);
      ASSERT_TRUE(found->is_free);
    }
    ASSERT_EQ(pool.largest(), reference.empty() ? 0 : *reference.rbegin());
  }
}

TEST(BlockPool, the_largest_size_there_is_has_a_bin) {
  BlockPool pool(0);
  Block block;
  block.size = ~size_t{0} / kBlockUnit * kBlockUnit;
  pool.insert(&block);
  EXPECT_EQ(pool.best_fit(kBlockUnit), &block);
  EXPECT_EQ(pool.best_fit(block.size), &block);
  pool.remove(&block);
  EXPECT_EQ(pool.best_fit(kBlockUnit), nullptr);
}

TEST(BlockPool, among_equals_the_last_one_freed_comes_first) {
  BlockPool pool(0);
  Block a, b;
  a.size = b.size = 4096;
  pool.insert(&a);
  pool.insert(&b);
  EXPECT_EQ(pool.best_fit(4096), &b);
}

TEST(BlockPool, whole_segments_have_no_neighbours) {
  BlockPool pool(0);
  Block whole, left, right;
  whole.size = left.size = right.size = 4096;
  left.after = &right;
  right.before = &left;
  for (Block* b : {&whole, &left, &right}) pool.insert(b);
  EXPECT_EQ(pool.whole_segments(), std::vector<Block*>{&whole});
}

TEST(BlockRecords, are_used_again) {
  BlockRecords records;
  Block* a = records.make();
  a->before = a->after = a;
  records.recycle(a);
  Block* b = records.make();
  EXPECT_EQ(a, b);
  EXPECT_TRUE(b->is_whole_segment());
  std::set<Block*> seen{b};
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(seen.insert(records.make()).second);
}

}  // namespace
}  // namespace gradus::runtime
