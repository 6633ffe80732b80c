#include <gradus/base/intrusive_ptr.h>
#include <gtest/gtest.h>

#include <thread>
#include <utility>
#include <vector>

namespace gradus {
namespace {

int alive = 0;
struct Thing : RefCounted {
  Thing() { ++alive; }
  ~Thing() { --alive; }
};

int released = 0;
struct Pooled : RefCounted {};
void release(Pooled* p) {
  ++released;
  delete p;
}

TEST(Intrusive, counts_its_owners) {
  {
    Intrusive<Thing> a(new Thing);
    EXPECT_EQ(a->use_count(), 1);
    Intrusive<Thing> b = a;
    EXPECT_EQ(a->use_count(), 2);
    EXPECT_TRUE(a == b);
    Intrusive<Thing> c = std::move(b);
    EXPECT_EQ(a->use_count(), 2);
    EXPECT_FALSE(b);
    c = Intrusive<Thing>(new Thing);
    EXPECT_EQ(alive, 2);
    EXPECT_EQ(a->use_count(), 1);
    EXPECT_FALSE(a == c);
    a = a.get() ? a : c;  // to itself
    EXPECT_EQ(a->use_count(), 1);
    c.reset();
    EXPECT_EQ(alive, 1);
    EXPECT_FALSE(c);
  }
  EXPECT_EQ(alive, 0);
}

TEST(Intrusive, the_last_owner_calls_release_where_there_is_one) {
  Intrusive<Pooled> a(new Pooled);
  Intrusive<Pooled> b = a;
  a.reset();
  EXPECT_EQ(released, 0);
  b = nullptr;
  EXPECT_EQ(released, 1);
}

TEST(Intrusive, threads_share_an_object) {
  Intrusive<Thing> shared(new Thing);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([copy = shared] {
      for (int i = 0; i < 10'000; ++i) Intrusive<Thing> another = copy;
    });
  for (auto& t : threads) t.join();
  threads.clear();
  EXPECT_EQ(shared->use_count(), 1);
  shared.reset();
  EXPECT_EQ(alive, 0);
}

}  // namespace
}  // namespace gradus
