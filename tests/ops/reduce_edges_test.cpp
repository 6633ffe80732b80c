// Reductions at the edges: no elements, NaN, ties, many elements, several threads.
#include <gradus/autograd/backward.h>
#include <gradus/base/parallel.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/cumsum.h>
#include <gradus/ops/extremum.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/norm.h>
#include <gradus/ops/random.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace gradus {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<double> values(const Tensor& x) { return x.to_vector<double>(); }

bool all_nan(const Tensor& x) {
  for (double v : x.to_vector<double>())
    if (!std::isnan(v)) return false;
  return true;
}

std::string error_code(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.code();
  }
  return "none";
}

TEST(Reduce, NUM_21_empty_tensors) {
  const Tensor none = zeros({0}), rows = zeros({0, 3});
  EXPECT_TRUE(all_nan(mean(none)));
  EXPECT_EQ(values(sum(none)), std::vector<double>{0});
  EXPECT_EQ(values(prod(none)), std::vector<double>{1});
  EXPECT_EQ(error_code([&] { max(none); }), "E-SHAPE");
  EXPECT_EQ(values(sum(rows, 0)), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(mean(rows, 0).sizes(), Shape{3});
  EXPECT_TRUE(all_nan(mean(rows, 0)));
  EXPECT_EQ(error_code([&] { max(rows, 0); }), "E-SHAPE");
  EXPECT_EQ(error_code([&] { argmax(none); }), "E-SHAPE");
  const auto [value, index] = max(rows, 1);
  EXPECT_EQ(value.sizes(), Shape{0});
  EXPECT_EQ(index.sizes(), Shape{0});
  EXPECT_EQ(values(all(none)), std::vector<double>{1});
  EXPECT_EQ(values(any(none)), std::vector<double>{0});
}

TEST(Reduce, AG_05_norm_at_the_zero_vector) {
  for (double p : {1.0, 2.0, 3.0, kInfinity}) {
    Tensor x = zeros({2}).requires_grad_();
    norm(x, p).backward();
    EXPECT_EQ(values(x.grad()), (std::vector<double>{0, 0})) << p;
  }
}

TEST(Reduce, AG_09_broadcast_over_no_elements) {
  Tensor a = ones({4, 0}).requires_grad_(), b = ones({4}).requires_grad_();
  const Tensor loss = sum(a + b.unsqueeze(1));
  EXPECT_EQ(loss.item<double>(), 0);
  loss.backward();
  EXPECT_EQ(values(b.grad()), (std::vector<double>{0, 0, 0, 0}));
  EXPECT_EQ(a.grad().sizes(), (Shape{4, 0}));
}

TEST(Reduce, AG_07_argmax_has_no_gradient) {
  EXPECT_FALSE(argmax(ones({3}).requires_grad_()).requires_grad());
  EXPECT_FALSE(std::get<1>(max(ones({3}).requires_grad_(), 0)).requires_grad());
}

TEST(Reduce, integers_and_bools_add_up_in_int64) {
  const Tensor x = full({300}, 200, {.dtype = kUInt8});
  EXPECT_EQ(sum(x).dtype(), kInt64);
  EXPECT_EQ(sum(x).item<int64_t>(), 60000);
  EXPECT_EQ(sum(ones({5}, {.dtype = kBool})).item<int64_t>(), 5);
  EXPECT_EQ(prod(full({3}, 100, {.dtype = kUInt8})).item<int64_t>(), 1000000);
  EXPECT_EQ(cumsum(full({3}, 100, {.dtype = kUInt8}), 0).to_vector<int64_t>(),
            (std::vector<int64_t>{100, 200, 300}));
  EXPECT_EQ(amax(x).dtype(), kUInt8);
  EXPECT_EQ(error_code([&] { mean(x); }), "E-DTYPE");
  EXPECT_EQ(count_nonzero(tensor({0.0, 2.0, std::nan("")})).item<int64_t>(), 2);
}

TEST(Reduce, half_types_add_up_in_float32) {
  // 4096 + 1 is not a float16: in float16 the sum would stay there.
  EXPECT_EQ(sum(ones({10000}, {.dtype = kFloat16})).item<double>(), 10000);
  EXPECT_EQ(sum(ones({512, 3}, {.dtype = kBFloat16}), 0).to_vector<double>(),
            (std::vector<double>{512, 512, 512}));
}

// Added up one after another in float32, 3 million times 0.1 is 3 % off.
TEST(Reduce, sums_of_many_keep_their_digits) {
  const int64_t n = 3000000;
  const Tensor x = full({n}, 0.1f);
  EXPECT_LE(std::abs(sum(x).item<double>() / static_cast<double>(n) / static_cast<double>(0.1f) - 1), 2e-6);
  EXPECT_LE(std::abs(sum(x.reshape({n / 3, 3}), 0)[1].item<double>() / static_cast<double>(n / 3) /
                         static_cast<double>(0.1f) -
                     1),
            2e-6);
}

TEST(Reduce, the_number_of_threads_does_not_matter) {
  const int before = get_num_threads();
  for (const Shape& sizes : {Shape{1000000}, Shape{3, 400001}, Shape{200000, 7}, Shape{100, 100, 100}}) {
    const Tensor x = rand(sizes);
    for (const Dims& dims : {Dims(), Dims(0), Dims(-1)}) {
      set_num_threads(1);
      const auto one = values(sum(x, dims));
      set_num_threads(3);
      EXPECT_EQ(one, values(sum(x, dims))) << to_string(sizes);
    }
  }
  set_num_threads(before);
}

TEST(Reduce, large_strided_sums_are_right) {
  const Tensor x = rand({64, 30, 20, 10}).to(MemoryFormat::channels_last);
  const auto want = values(sum(x.to(kFloat64).contiguous(), {0, 2, 3}));
  const auto channels_last = values(sum(x, {0, 2, 3})), contiguous = values(sum(x.contiguous(), {0, 2, 3}));
  for (size_t c = 0; c < want.size(); ++c) {
    EXPECT_TRUE(std::abs(channels_last[c] - want[c]) <= 1e-6 * want[c]) << c;
    EXPECT_TRUE(std::abs(contiguous[c] - want[c]) <= 1e-6 * want[c]) << c;
  }
}

TEST(Reduce, dims_are_checked) {
  const Tensor x = zeros({2, 3});
  EXPECT_EQ(error_code([&] { sum(x, 2); }), "E-DIM");
  EXPECT_EQ(error_code([&] { sum(x, {0, -2}); }), "E-DIM");
  EXPECT_EQ(error_code([&] { sum_to_size(x, {2}); }), "E-SHAPE");
  EXPECT_EQ(sum(x, {}).sizes(), Shape{});
}

TEST(Reduce, nan_wins_and_the_first_of_equals_is_found) {
  const double nan = std::nan("");
  for (int64_t n : {5, 100}) {
    for (DType dtype : {kFloat16, kBFloat16, kFloat32, kFloat64}) {
      Tensor x = zeros({n}, {.dtype = dtype});
      x.narrow(0, 3, 2).fill_(7);
      EXPECT_EQ(argmax(x).item<int64_t>(), 3);
      EXPECT_EQ(argmin(x).item<int64_t>(), 0);
      x.narrow(0, 2, 1).fill_(nan);
      EXPECT_TRUE(all_nan(amax(x)) && all_nan(amin(x)));
      EXPECT_EQ(argmax(x).item<int64_t>(), 2);
      EXPECT_EQ(argmin(x).item<int64_t>(), 2);
      EXPECT_TRUE(all_nan(std::get<0>(max(x, 0))));
    }
  }
  EXPECT_EQ(amax(full({40}, -kInfinity)).item<double>(), -kInfinity);
  EXPECT_EQ(amin(full({40}, kInfinity)).item<double>(), kInfinity);
  EXPECT_EQ(argmax(tensor({1, 5, 5, 2}), 0, true).sizes(), Shape{1});
}

TEST(Reduce, equal_extrema_share_the_gradient_or_the_first_gets_it) {
  Tensor x = tensor({1, 3, 3, 2}).to(kFloat32).requires_grad_();
  max(x).backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{0, 0.5, 0.5, 0}));
  x.set_grad({});
  std::get<0>(max(x, 0)).backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{0, 1, 0, 0}));
}

TEST(Reduce, prod_differentiates_where_there_are_zeros) {
  const auto slope = [](std::initializer_list<double> v) {
    Tensor x = tensor(v, {.dtype = kFloat64}).requires_grad_();
    return autograd::grad({prod(x)}, {x}, {}, false, true)[0];
  };
  EXPECT_EQ(values(slope({2, 3, 4})), (std::vector<double>{12, 8, 6}));
  EXPECT_EQ(values(slope({2, 0, 4})), (std::vector<double>{0, 8, 0}));
  EXPECT_EQ(values(slope({0, 0, 4})), (std::vector<double>{0, 0, 0}));
  Tensor x = tensor({0.0, 0.0, 4.0}, {.dtype = kFloat64}).requires_grad_();
  const Tensor first = autograd::grad({prod(x)}, {x}, {}, false, true)[0];
  EXPECT_EQ(values(autograd::grad({first[0]}, {x})[0]), (std::vector<double>{0, 4, 0}));
}

TEST(Reduce, all_and_any) {
  const Tensor x = tensor({{1, 0}, {2, 3}});
  EXPECT_EQ(values(all(x, 1)), (std::vector<double>{0, 1}));
  EXPECT_EQ(values(any(x == 0, 0, true)), (std::vector<double>{0, 1}));
  EXPECT_EQ(all(x).dtype(), kBool);
  EXPECT_EQ(any(x, 0, true).sizes(), (Shape{1, 2}));
}

TEST(Reduce, variance_of_one_value) {
  EXPECT_TRUE(all_nan(var(tensor({1.0, 2.0}).reshape({2, 1}), 1)));
  EXPECT_EQ(var(tensor({2.0}), {}, false, 0).item<double>(), 0);
  Tensor x = full({4}, 3.0).requires_grad_();
  gradus::std(x).backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{0, 0, 0, 0}));
}

TEST(Reduce, norms_of_other_orders) {
  const Tensor x = tensor({3.0, 0.0, -4.0});
  EXPECT_EQ(norm(x, 0).item<double>(), 2);
  EXPECT_EQ(norm(x, -kInfinity).item<double>(), 0);
  EXPECT_EQ(x.norm().item<double>(), 5);
  EXPECT_EQ(error_code([&] { norm(zeros({0}), kInfinity); }), "E-SHAPE");
  EXPECT_EQ(error_code([&] { norm(zeros({2}, {.dtype = kInt64})); }), "E-DTYPE");
}

TEST(Reduce, logsumexp_does_not_overflow) {
  EXPECT_TRUE(std::abs(logsumexp(tensor({1000.0, 1000.0}), 0).item<double>() - 1000.693147) <= 1e-4);
  EXPECT_EQ(logsumexp(full({3}, -kInfinity), 0).item<double>(), -kInfinity);
  EXPECT_EQ(logsumexp(tensor({0.0, kInfinity}), 0).item<double>(), kInfinity);
}

}  // namespace
}  // namespace gradus
