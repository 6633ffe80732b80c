#include <gradus/base/parallel.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/random.h>
#include <gradus/ops/reduce.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/expect_error.h"

namespace gradus {
namespace {

using ::gradus::testing::error_of;

// The statement of random.h: element i is what the stream gives for i.
TEST(RandomOps, elements_are_the_streams_to_the_last_bit) {
  Generator g(7);
  const Tensor uniform = rand({50, 41}, {}, g), normal = randn({50, 41}, {}, g);
  const Tensor uniform64 = rand({2050}, {.dtype = kFloat64}, g),
               normal64 = randn({2049}, {.dtype = kFloat64}, g);
  const Tensor whole = randint(-3, 9, {2050}, {}, g);
  const auto u = uniform.to_vector<float>(), n = normal.to_vector<float>();
  const auto u64 = uniform64.to_vector<double>(), n64 = normal64.to_vector<double>();
  const auto w = whole.to_vector<int64_t>();
  for (uint64_t i = 0; i < 2049; ++i) {
    ASSERT_EQ(u[i], (PhiloxStream{7, 0}.uniform<float>(i)));
    ASSERT_EQ(n[i], (PhiloxStream{7, 1}.normal<float>(i)));
    ASSERT_EQ(u64[i], (PhiloxStream{7, 2}.uniform<double>(i)));
    ASSERT_DOUBLE_EQ(n64[i], (PhiloxStream{7, 3}.normal<double>(i)));
    ASSERT_EQ(w[i], -3 + static_cast<int64_t>(PhiloxStream{7, 4}.below(i, 12)));
  }
}

TEST(RandomOps, the_same_values_in_every_memory_order_and_for_every_number_of_threads) {
  const Tensor plain = zeros({8, 16, 30, 30});
  const Tensor last = zeros({8, 16, 30, 30}, {.memory_format = MemoryFormat::channels_last});
  Generator a(3), b(3), c(3), d(3);
  const auto wanted = randn_like(plain, a).to_vector<float>();
  EXPECT_EQ(randn_like(last, b).to_vector<float>(), wanted);
  {
    SerialGuard serial;
    EXPECT_EQ(randn_like(plain, c).to_vector<float>(), wanted);
  }
  Tensor wide = zeros({8, 16, 30, 60});
  EXPECT_EQ(normal_(wide.slice(3, 0, 60, 2), 0, 1, d).to_vector<float>(), wanted);
  EXPECT_EQ(wide.slice(3, 1, 60, 2).to_vector<float>(), std::vector<float>(wanted.size(), 0));
}

TEST(RandomOps, manual_seed_repeats_and_calls_differ) {
  manual_seed(1);
  const auto first = rand({4}).to_vector<float>(), second = rand({4}).to_vector<float>();
  EXPECT_NE(first, second);
  manual_seed(1);
  EXPECT_EQ(rand({4}).to_vector<float>(), first);
}

TEST(RandomOps, moments_and_ranges) {
  Generator g(11);
  const auto u = uniform_(zeros({100000}), -2, 4, g).to_vector<double>();
  const auto n = normal_(zeros({100000}), 3, 2, g).to_vector<double>();
  auto mean = [](const std::vector<double>& v) { return std::accumulate(v.begin(), v.end(), 0.0) / 1e5; };
  auto deviation = [&](const std::vector<double>& v) {
    const double m = mean(v);
    double sum = 0;
    for (double x : v) sum += (x - m) * (x - m);
    return std::sqrt(sum / 1e5);
  };
  // Five standard errors of the mean and of the deviation.
  EXPECT_TRUE(std::fabs(mean(u) - 1) <= 5 * 1.732 / 316);
  EXPECT_TRUE(std::fabs(mean(n) - 3) <= 5 * 2.0 / 316);
  EXPECT_TRUE(std::fabs(deviation(u) - 1.732) <= 5 * 1.732 / 447);
  EXPECT_TRUE(std::fabs(deviation(n) - 2) <= 5 * 2.0 / 447);
  EXPECT_GE(*std::min_element(u.begin(), u.end()), -2);
  EXPECT_LT(*std::max_element(u.begin(), u.end()), 4);
}

TEST(RandomOps, half_uniform_numbers_stay_below_1) {
  for (DType dtype : {kFloat16, kBFloat16}) {
    const auto u = rand({200000}, dtype).to_vector<float>();
    EXPECT_LT(*std::max_element(u.begin(), u.end()), 1);
    EXPECT_GT(*std::max_element(u.begin(), u.end()), 0.99);
  }
}

TEST(RandomOps, randint_and_randperm_cover_what_they_should) {
  Generator g(5);
  const auto w = randint(3, 6, {1000}, {}, g).to_vector<int64_t>();
  for (int64_t value : {3, 4, 5}) EXPECT_GT(std::count(w.begin(), w.end(), value), 250);
  EXPECT_EQ(randint(10, {2}).dtype(), kInt64);
  auto order = randperm(100, {}, g).to_vector<int64_t>();
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  EXPECT_EQ(order, arange(100).to_vector<int64_t>());
  EXPECT_EQ(randperm(0).numel(), 0);
}

TEST(RandomOps, bernoulli_follows_its_probabilities) {
  const auto b = bernoulli(full({100000}, 0.25)).to_vector<double>();
  const double share = std::accumulate(b.begin(), b.end(), 0.0) / 1e5;
  EXPECT_TRUE(std::fabs(share - 0.25) <= 5 * 0.433 / 316);
  EXPECT_EQ(bernoulli(tensor({0.0, 1.0})).to_vector<float>(), (std::vector<float>{0, 1}));
}

TEST(RandomOps, in_place_rules_hold) {
  Tensor x = zeros({3}).requires_grad_();
  EXPECT_THROW(normal_(x), Error);
  EXPECT_EQ(x.detach().to_vector<float>(), (std::vector<float>{0, 0, 0}));
  const uint32_t before = x.version();
  uniform_(x.detach());
  EXPECT_GT(x.version(), before);
}

TEST(RandomOps, what_was_overwritten_gets_no_gradient) {
  const Tensor x = ones({3}).requires_grad_();
  for (auto* fill : {+[](Tensor& t) { uniform_(t); }, +[](Tensor& t) { normal_(t); }}) {
    Tensor y = x * 2;
    fill(y);
    (y * 5 + x).sum().backward();
    EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{1, 1, 1}));
    Tensor(x).set_grad({});
  }
}

TEST(RandomOps, wrong_arguments_are_refused) {
  EXPECT_THROW(randint(3, 3, {2}), Error);
  EXPECT_THROW(rand({2}, kInt64), Error);
  EXPECT_THROW(normal_(zeros({2}), 0, -1), Error);
  EXPECT_THROW(uniform_(zeros({2}), 1, 0), Error);
  EXPECT_THROW(randperm(-1), Error);
}

TEST(RandomOps, numbers_that_the_dtype_does_not_hold_are_refused) {
  EXPECT_EQ(randint(255, 256, {3}, {.dtype = kUInt8}).to_vector<int>(), (std::vector<int>{255, 255, 255}));
  EXPECT_EQ(
      error_of([] { randint(0, 300, {2}, {.dtype = kUInt8}); }),
      "E-ARG: randint: numbers from 0 to 299 do not fit uint8, which holds 0 to 255\n  hint: give another "
      "dtype, such as kInt64");
  EXPECT_GRADUS_ERROR(randint(-1, 2, {2}, {.dtype = kUInt8}), "E-ARG", "from -1 to 1 do not fit uint8");
  EXPECT_GRADUS_ERROR(randint(0, int64_t{1} << 40, {2}, {.dtype = kInt32}), "E-ARG", "do not fit int32");
  EXPECT_GRADUS_ERROR(randint(0, 70000, {2}, {.dtype = kFloat16}), "E-ARG", "do not fit float16");
  EXPECT_NO_THROW(randint(INT64_MIN, INT64_MAX, {2}));
}

TEST(RandomOps, a_permutation_that_the_dtype_cannot_count_is_refused) {
  auto sorted = randperm(256, {.dtype = kUInt8}).to_vector<int64_t>();
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, arange(256).to_vector<int64_t>());
  EXPECT_EQ(
      error_of([] { randperm(257, {.dtype = kUInt8}); }),
      "E-ARG: randperm: the numbers 0 to 256 do not fit uint8, which holds 0 to 255 exactly\n  hint: give "
      "another dtype, such as kInt64");
  EXPECT_EQ(randperm(2049, {.dtype = kFloat16}).max().item<int64_t>(), 2048);
  EXPECT_GRADUS_ERROR(randperm(2050, {.dtype = kFloat16}), "E-ARG", "0 to 2048 exactly");
  EXPECT_GRADUS_ERROR(randperm(258, {.dtype = kBFloat16}), "E-ARG", "0 to 256 exactly");
  EXPECT_GRADUS_ERROR(randperm(3, {.dtype = kBool}), "E-ARG", "0 to 1 exactly");
}

}  // namespace
}  // namespace gradus
