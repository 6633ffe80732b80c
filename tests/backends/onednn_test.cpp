// The cache of oneDNN's primitives: one for each problem and thread, any number of problems.
#include <gradus/backends/cpu/onednn.h>
#include <gradus/base/parallel.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/random.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>
#include <vector>

#include "support/expect_error.h"

namespace gradus::cpu {
namespace {

TEST(PrimitiveKey, tells_problems_apart) {
  const Tensor a = empty({4, 6}), b = empty({6, 4}), half = empty({4, 6}, kBFloat16);
  auto key = [](int64_t kind, const TensorArg& t) { return Key(kind).add(t); };
  EXPECT_TRUE(key(1, a.arg()) == key(1, empty({4, 6}).arg()));  // addresses do not count
  EXPECT_EQ(key(1, a.arg()).hash(), key(1, empty({4, 6}).arg()).hash());
  EXPECT_FALSE(key(1, a.arg()) == key(2, a.arg()));
  EXPECT_FALSE(key(1, a.arg()) == key(1, b.arg()));
  EXPECT_FALSE(key(1, a.arg()) == key(1, half.arg()));
  EXPECT_FALSE(key(1, a.arg()) == key(1, b.t().arg()));  // same sizes, other strides
  EXPECT_FALSE(key(1, a.arg()) == key(1, TensorArg{}));
}

int made = 0;
void make_nothing(Primitive&, const void*) { ++made; }
void make_unsupported(Primitive&, const void*) {
  ++made;
  throw dnnl::error(dnnl_unimplemented, "no such primitive");
}
void make_broken(Primitive&, const void*) { throw dnnl::error(dnnl_invalid_arguments, "broken"); }

TEST(PrimitiveCache, makes_each_primitive_once_and_remembers_that_there_is_none) {
  made = 0;
  Primitive* first = find_primitive(Key(1000), &make_nothing, nullptr);
  EXPECT_NE(first, nullptr);
  EXPECT_EQ(find_primitive(Key(1000), &make_nothing, nullptr), first);
  EXPECT_EQ(made, 1);
  EXPECT_EQ(find_primitive(Key(1001), &make_unsupported, nullptr), nullptr);
  EXPECT_EQ(find_primitive(Key(1001), &make_unsupported, nullptr), nullptr);
  EXPECT_EQ(made, 2);
  EXPECT_GRADUS_ERROR(find_primitive(Key(1002), &make_broken, nullptr), "E-INTERNAL", "oneDNN: broken");
}

TEST(PrimitiveCache, another_thread_count_is_another_problem) {
  const int threads = get_num_threads();
  made = 0;
  find_primitive(Key(1003), &make_nothing, nullptr);
  set_num_threads(threads + 1);
  find_primitive(Key(1003), &make_nothing, nullptr);
  set_num_threads(threads);
  EXPECT_EQ(made, 2);
}

// Does y = a b^T agree with sums in double? The size is beyond what the library leaves to plain loops.
bool product_is_right(int64_t m, uint64_t seed) {
  Generator generator(seed);
  const Tensor a = randn({m, 40}, {}, generator), b = randn({30, 40}, {}, generator);
  const auto x = a.to_vector<double>(), w = b.to_vector<double>(), y = linear(a, b).to_vector<double>();
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < 30; ++j) {
      double want = 0;
      for (int64_t k = 0; k < 40; ++k)
        want += x[static_cast<size_t>(i * 40 + k)] * w[static_cast<size_t>(j * 40 + k)];
      if (!(std::fabs(y[static_cast<size_t>(i * 30 + j)] - want) <= 1e-4)) return false;
    }
  return true;
}

TEST(PrimitiveCache, more_problems_than_it_has_entries) {
  for (int64_t m = 30; m < 730; ++m) ASSERT_TRUE(product_is_right(m, 1)) << m;
  for (int64_t m = 30; m < 60; ++m)
    ASSERT_TRUE(product_is_right(m, 2)) << m;  // the first ones were displaced
}

TEST(PrimitiveCache, the_same_problem_on_several_threads_at_once) {
  std::vector<int> right(4, 0);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < right.size(); ++t)
    threads.emplace_back([&right, t] {
      const SerialGuard serial;
      for (uint64_t i = 0; i < 50; ++i) right[t] += product_is_right(64, 100 * t + i);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(right, std::vector<int>(4, 50));
}

}  // namespace
}  // namespace gradus::cpu
