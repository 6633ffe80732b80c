#include <gradus/autograd/backward.h>
#include <gradus/base/parallel.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/cumsum.h>
#include <gradus/ops/extremum.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/norm.h>
#include <gradus/ops/random.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "op_case.h"

namespace gradus::optest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The reference of a reduction: f of the values that go into one result, in row-major order.
auto reduced(std::vector<int> dims, bool keepdim, double (*f)(const std::vector<double>&)) {
  return [=](const RefArrays& x) {
    const Shape& sizes = x[0].sizes;
    auto gone = [&](int d) { return dims.empty() || std::count(dims.begin(), dims.end(), d) > 0; };
    Shape kept, out;
    for (int d = 0; d < sizes.size(); ++d) {
      kept.push_back(gone(d) ? 1 : sizes[d]);
      if (!gone(d) || keepdim) out.push_back(kept.back());
    }
    std::vector<std::vector<double>> groups(static_cast<size_t>(kept.numel()));
    for (int64_t i = 0; i < x[0].numel(); ++i)
      groups[static_cast<size_t>(broadcast_index(i, sizes, kept))].push_back(x[0][i]);
    RefArray y(out);
    for (int64_t i = 0; i < y.numel(); ++i) y[i] = f(groups[static_cast<size_t>(i)]);
    return y;
  };
}

double total(const std::vector<double>& v) {
  double s = 0;
  for (double x : v) s += x;
  return s;
}
double product(const std::vector<double>& v) {
  double s = 1;
  for (double x : v) s *= x;
  return s;
}
double average(const std::vector<double>& v) { return total(v) / static_cast<double>(v.size()); }
double largest(const std::vector<double>& v) { return *std::max_element(v.begin(), v.end()); }
double smallest(const std::vector<double>& v) { return *std::min_element(v.begin(), v.end()); }
double variance(const std::vector<double>& v) {
  double s = 0;
  for (double x : v) s += (x - average(v)) * (x - average(v));
  return s / static_cast<double>(v.size() - 1);
}
double deviation(const std::vector<double>& v) { return std::sqrt(variance(v)); }
double log_sum_exp(const std::vector<double>& v) {
  double s = 0;
  for (double x : v) s += std::exp(x);
  return std::log(s);
}
template <int P>
double p_norm(const std::vector<double>& v) {
  double s = 0;
  for (double x : v) s += std::pow(std::abs(x), P);
  return std::pow(s, 1.0 / P);
}
double max_norm(const std::vector<double>& v) {
  double s = 0;
  for (double x : v) s = std::max(s, std::abs(x));
  return s;
}

const std::vector<std::vector<Shape>> kFull = {{{3, 4}}, {{2, 3, 2, 2}}, {{}}, {{1, 1}}, {{70}}};
const std::vector<std::vector<Shape>> kFullOrEmpty = {{{3, 4}}, {{2, 3, 2, 2}}, {{}},
                                                      {{1, 1}}, {{2, 0}},       {{70}}};
const std::vector<std::vector<Shape>> kFirst = {{{3, 4}}, {{2, 3, 2, 2}}, {{1, 5}}, {{3, 0}}, {{3, 43}}};
const std::vector<std::vector<Shape>> kLast = {{{3, 4}}, {{2, 3, 2, 2}}, {{5, 1}}, {{0, 3}}, {{2, 37}}};
const std::vector<std::vector<Shape>> kChannels = {{{2, 3, 2, 2}}, {{1, 9, 3, 1}}, {{0, 2, 1, 1}}};

GRADUS_OP_CASES(
    sums,
    OpCase{.name = "sum",
           .shapes = kFullOrEmpty,
           .inputs = {{uniform(-1, 1)}},
           .forward = [](const Tensors& x) { return sum(x[0]); },
           .reference = reduced({}, false, total),
           .tolerance = 12},
    OpCase{.name = "sum_first",
           .shapes = kFirst,
           .inputs = {{}},
           .forward = [](const Tensors& x) { return sum(x[0], 0); },
           .reference = reduced({0}, false, total)},
    OpCase{.name = "sum_last_keepdim",
           .shapes = kLast,
           .inputs = {{uniform(-1, 1)}},
           .forward = [](const Tensors& x) { return sum(x[0], -1, true); },
           .reference = [](const RefArrays& x) { return reduced({x[0].sizes.size() - 1}, true, total)(x); },
           .tolerance = 12},
    OpCase{.name = "sum_all_but_channels",
           .shapes = kChannels,
           .inputs = {{}},
           .forward =
               [](const Tensors& x) {
                 return sum(x[0], {0, 2, 3});
               },
           .reference = reduced({0, 2, 3}, false, total),
           .tolerance = 12},
    OpCase{.name = "mean",
           .shapes = kFull,
           .inputs = {{}},
           .forward = [](const Tensors& x) { return mean(x[0]); },
           .reference = reduced({}, false, average)},
    OpCase{.name = "mean_channels",
           .shapes = {{{2, 3, 2, 2}}, {{1, 9, 3, 1}}},
           .inputs = {{}},
           .forward =
               [](const Tensors& x) {
                 return mean(x[0], {0, 2, 3}, true);
               },
           .reference = reduced({0, 2, 3}, true, average)},
    OpCase{.name = "sum_to_size",
           .shapes = {{{3, 4}}, {{2, 3, 2, 4}}, {{1, 1, 4}}, {{0, 3, 4}}},
           .inputs = {{}},
           .forward =
               [](const Tensors& x) {
                 return sum_to_size(x[0], {1, 4});
               },
           .reference =
               [](const RefArrays& x) {
                 std::vector<int> dims;
                 for (int d = 0; d + 1 < x[0].sizes.size(); ++d) dims.push_back(d);
                 RefArray y = reduced(dims, false, total)(x);
                 y.sizes = {1, 4};
                 return y;
               },
           .tolerance = 12},
    OpCase{.name = "prod",
           .shapes = {{{3, 4}}, {{}}, {{1, 1}}, {{2, 0}}, {{2, 3, 2, 1}}},
           .inputs = {{uniform(0.5, 1.5)}},
           .forward = [](const Tensors& x) { return prod(x[0]); },
           .reference = reduced({}, false, product),
           .tolerance = 12},
    OpCase{.name = "prod_first",
           .shapes = {{{3, 4}}, {{5, 2}}, {{1, 5}}, {{2, 3, 2, 2}}},
           .inputs = {{uniform(0.5, 1.5)}},
           .forward = [](const Tensors& x) { return prod(x[0], 0, true); },
           .reference = reduced({0}, true, product),
           .tolerance = 8},
    OpCase{.name = "cumsum_first",
           .shapes = {{{3, 4}}, {{2, 3, 2, 2}}, {{1, 5}}, {{0, 3}}, {{}}},
           .inputs = {{}},
           .forward = [](const Tensors& x) { return cumsum(x[0], 0); },
           .reference =
               [](const RefArrays& x) {
                 RefArray y = x[0];
                 const int64_t row = y.sizes.empty() ? 1 : y.numel() / std::max<int64_t>(1, y.sizes[0]);
                 for (int64_t i = row; i < y.numel(); ++i) y[i] += y[i - row];
                 return y;
               }});

GRADUS_OP_CASES(extrema,
                OpCase{.name = "amax",
                       .shapes = kFull,
                       .inputs = {{distinct()}},
                       .forward = [](const Tensors& x) { return amax(x[0]); },
                       .reference = reduced({}, false, largest)},
                OpCase{.name = "amin_first",
                       .shapes = kFirst,
                       .inputs = {{distinct()}},
                       .forward = [](const Tensors& x) { return amin(x[0], 0, true); },
                       .reference = reduced({0}, true, smallest)},
                OpCase{.name = "max",
                       .shapes = kFull,
                       .inputs = {{distinct()}},
                       .forward = [](const Tensors& x) { return max(x[0]); },
                       .reference = reduced({}, false, largest)},
                OpCase{.name = "min",
                       .shapes = kFull,
                       .inputs = {{distinct()}},
                       .forward = [](const Tensors& x) { return min(x[0]); },
                       .reference = reduced({}, false, smallest)},
                OpCase{.name = "max_first",
                       .shapes = kFirst,
                       .inputs = {{distinct()}},
                       .forward = [](const Tensors& x) { return std::get<0>(max(x[0], 0)); },
                       .reference = reduced({0}, false, largest)},
                OpCase{.name = "min_last",
                       .shapes = kLast,
                       .inputs = {{distinct()}},
                       .forward = [](const Tensors& x) { return std::get<0>(min(x[0], -1, true)); },
                       .reference =
                           [](const RefArrays& x) {
                             return reduced({x[0].sizes.size() - 1}, true, smallest)(x);
                           }},
                OpCase{.name = "argmax_first",
                       .shapes = kFirst,
                       .inputs = {{distinct(), false}},
                       .forward = [](const Tensors& x) { return argmax(x[0], 0); },
                       .reference = reduced({0}, false,
                                            [](const std::vector<double>& v) {
                                              return static_cast<double>(
                                                  std::max_element(v.begin(), v.end()) - v.begin());
                                            })},
                OpCase{.name = "argmin",
                       .shapes = kFull,
                       .inputs = {{distinct(), false}},
                       .forward = [](const Tensors& x) { return argmin(x[0]); },
                       .reference = reduced({}, false, [](const std::vector<double>& v) {
                         return static_cast<double>(std::min_element(v.begin(), v.end()) - v.begin());
                       })});

GRADUS_OP_CASES(norms,
                OpCase{.name = "var",
                       .shapes = {{{3, 4}}, {{2, 3, 2, 2}}, {{70}}},
                       .inputs = {{}},
                       .forward = [](const Tensors& x) { return var(x[0]); },
                       .reference = reduced({}, false, variance),
                       .tolerance = 8},
                OpCase{.name = "var_first",
                       .shapes = {{{3, 4}}, {{2, 3, 2, 2}}},
                       .inputs = {{}},
                       .forward = [](const Tensors& x) { return var(x[0], 0, true); },
                       .reference = reduced({0}, true, variance),
                       .tolerance = 8},
                OpCase{.name = "std",
                       .shapes = {{{3, 4}}, {{2, 3, 2, 2}}},
                       .inputs = {{}},
                       .forward = [](const Tensors& x) { return gradus::std(x[0], 0); },
                       .reference = reduced({0}, false, deviation),
                       .tolerance = 8,
                       .gradient_tolerance = 64},
                OpCase{.name = "norm",
                       .shapes = kFull,
                       .inputs = {{normal().away_from({0})}},
                       .forward = [](const Tensors& x) { return norm(x[0]); },
                       .reference = reduced({}, false, p_norm<2>)},
                OpCase{.name = "norm_first",
                       .shapes = kFirst,
                       .inputs = {{normal().away_from({0})}},
                       .forward = [](const Tensors& x) { return norm(x[0], 2, 0, true); },
                       .reference = reduced({0}, true, p_norm<2>)},
                OpCase{.name = "norm_1",
                       .shapes = kFirst,
                       .inputs = {{normal().away_from({0})}},
                       .forward = [](const Tensors& x) { return norm(x[0], 1, 0); },
                       .reference = reduced({0}, false, p_norm<1>)},
                OpCase{.name = "norm_3",
                       .shapes = kFirst,
                       .inputs = {{normal().away_from({0})}},
                       .forward = [](const Tensors& x) { return norm(x[0], 3, 0); },
                       .reference = reduced({0}, false, p_norm<3>)},
                OpCase{.name = "norm_inf",
                       .shapes = kFirst,
                       .inputs = {{uniform(0.1, 1)}},
                       .forward = [](const Tensors& x) { return norm(x[0], kInfinity, 0); },
                       .reference = reduced({0}, false, max_norm),
                       .dtypes = dtypes(kFloat32, kFloat64)},
                OpCase{.name = "logsumexp",
                       .shapes = kFirst,
                       .inputs = {{}},
                       .forward = [](const Tensors& x) { return logsumexp(x[0], 0); },
                       .reference = reduced({0}, false, log_sum_exp)});

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
}  // namespace gradus::optest
