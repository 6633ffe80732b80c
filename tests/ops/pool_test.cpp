#include <gradus/autograd/backward.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/conv.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/pool.h>
#include <gradus/ops/random.h>
#include <gradus/ops/view.h>

#include <cmath>
#include <limits>

#include "shaping.h"
#include "support/expect_error.h"

namespace gradus::optest {
namespace {

// The windows along one axis: where each starts, how many places it has and how far apart they are.
struct Axis {
  int64_t count, kernel, stride, padding, dilation = 1;
  bool adaptive = false;
};
Axis sliding(int64_t size, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation, bool ceil) {
  const int64_t room = size + 2 * padding - dilation * (kernel - 1) - 1;
  int64_t count = room / stride + 1;
  if (ceil && room % stride != 0 && count * stride < size + padding) ++count;
  return {count, kernel, stride, padding, dilation};
}
Axis dividing(int64_t outputs) {
  return {.count = outputs, .kernel = 0, .stride = 1, .padding = 0, .adaptive = true};
}

std::vector<int64_t> places(const Axis& a, int64_t i, int64_t size) {
  std::vector<int64_t> at;
  if (a.adaptive) {
    for (int64_t s = i * size / a.count; s < ((i + 1) * size + a.count - 1) / a.count; ++s) at.push_back(s);
  } else {
    for (int64_t k = 0; k < a.kernel; ++k) at.push_back(i * a.stride - a.padding + k * a.dilation);
  }
  return at;
}

enum class Pool { max, mean };

// Over the last two dimensions. pads: how many of a window's places outside the input count, in avg_pool2d.
RefArray pooled(const RefArray& x, Pool pool, const Axis& rows, const Axis& columns, bool count_pad = true,
                int64_t divisor = 0) {
  Shape sizes = x.sizes;
  const int d = sizes.size();
  sizes[d - 2] = rows.count, sizes[d - 1] = columns.count;
  return build(sizes, [&](const Shape& at) {
    double best = -std::numeric_limits<double>::infinity(), sum = 0;
    int64_t inside = 0, padded = 0;
    for (int64_t r : places(rows, at[d - 2], x.sizes[d - 2]))
      for (int64_t s : places(columns, at[d - 1], x.sizes[d - 1])) {
        const bool in = r >= 0 && r < x.sizes[d - 2] && s >= 0 && s < x.sizes[d - 1];
        padded += r < x.sizes[d - 2] + rows.padding && s < x.sizes[d - 1] + columns.padding;
        if (!in) continue;
        const double v = x.at(with(with(at, d - 2, r), d - 1, s));
        best = std::max(best, v), sum += v, ++inside;
      }
    if (pool == Pool::max) return best;
    return sum / static_cast<double>(divisor ? divisor : count_pad ? padded : inside);
  });
}

std::vector<std::vector<Shape>> images() {
  return one_input({{2, 2, 4, 5}, {3, 5, 4}, {1, 1, 4, 4}, {0, 2, 4, 4}});
}

OpCase max_case(const char* name, Size2 kernel, const MaxPool2dOptions& o,
                std::vector<std::vector<Shape>> shapes = images()) {
  return {.name = name,
          .shapes = std::move(shapes),
          .inputs = {{distinct()}},
          .forward = [=](const Tensors& x) { return max_pool2d(x[0], kernel, o); },
          .reference =
              [=](const RefArrays& x) {
                const Size2 stride = o.stride.value_or(kernel);
                const Shape& s = x[0].sizes;
                const int d = s.size();
                return pooled(x[0], Pool::max,
                              sliding(s[d - 2], kernel.h, stride.h, o.padding.h, o.dilation.h, o.ceil_mode),
                              sliding(s[d - 1], kernel.w, stride.w, o.padding.w, o.dilation.w, o.ceil_mode));
              }};
}

OpCase avg_case(const char* name, Size2 kernel, const AvgPool2dOptions& o) {
  return {.name = name,
          .shapes = images(),
          .inputs = {{}},
          .forward = [=](const Tensors& x) { return avg_pool2d(x[0], kernel, o); },
          .reference =
              [=](const RefArrays& x) {
                const Size2 stride = o.stride.value_or(kernel);
                const Shape& s = x[0].sizes;
                const int d = s.size();
                return pooled(x[0], Pool::mean,
                              sliding(s[d - 2], kernel.h, stride.h, o.padding.h, 1, o.ceil_mode),
                              sliding(s[d - 1], kernel.w, stride.w, o.padding.w, 1, o.ceil_mode),
                              o.count_include_pad, o.divisor_override.value_or(0));
              }};
}

OpCase adaptive_case(const char* name, Pool pool, Size2 out) {
  return {
      .name = name,
      .shapes = one_input({{2, 2, 4, 5}, {3, 7, 4}, {1, 1, 3, 3}, {0, 2, 4, 4}, {1, 70, 1, 1}}),
      .inputs = {{pool == Pool::max ? distinct() : normal()}},
      .forward =
          [=](const Tensors& x) {
            return pool == Pool::max ? adaptive_max_pool2d(x[0], out) : adaptive_avg_pool2d(x[0], out);
          },
      .reference = [=](const RefArrays& x) { return pooled(x[0], pool, dividing(out.h), dividing(out.w)); }};
}

OpCase only_wide(OpCase c) {  // distinct() has no ties up to 100 elements, in half types
  c.dtypes = dtypes(kFloat32, kFloat64);
  return c;
}

GRADUS_OP_CASES(pool, max_case("max_pool2d", 2, {}),
                max_case("max_pool2d_overlapping", {3, 2}, {.stride = Size2(1)}),
                max_case("max_pool2d_padding", 3, {.stride = Size2(2), .padding = 1}),
                max_case("max_pool2d_dilation", 2, {.stride = Size2(1), .padding = 1, .dilation = {2, 3}}),
                max_case("max_pool2d_ceil", {3, 2}, {.stride = Size2(2), .ceil_mode = true}),
                max_case("max_pool2d_ceil_padding", 2, {.stride = Size2(3), .padding = 1, .ceil_mode = true}),
                only_wide(max_case("max_pool2d_window_beyond_a_byte", 17, {.stride = Size2(1)},
                                   one_input({{1, 1, 17, 18}}))),
                max_case("max_pool2d_many_channels", 2, {}, one_input({{1, 24, 2, 2}})),
                avg_case("avg_pool2d", 2, {}),
                avg_case("avg_pool2d_padding", 3, {.stride = Size2(2), .padding = 1}),
                avg_case("avg_pool2d_not_counting_pad", 3,
                         {.stride = Size2(2), .padding = 1, .count_include_pad = false}),
                avg_case("avg_pool2d_ceil", {3, 2}, {.stride = Size2(2), .padding = 1, .ceil_mode = true}),
                avg_case("avg_pool2d_divisor", {2, 3}, {.stride = Size2(1), .divisor_override = 5}),
                adaptive_case("adaptive_avg_pool2d", Pool::mean, {2, 3}),
                adaptive_case("adaptive_avg_pool2d_global", Pool::mean, 1),
                adaptive_case("adaptive_avg_pool2d_enlarging", Pool::mean, {7, 9}),
                adaptive_case("adaptive_max_pool2d", Pool::max, {3, 2}));

struct Picked {
  std::vector<double> values;
  std::vector<int64_t> indices;
};
Picked pick(const Tensor& x, Size2 kernel, const MaxPool2dOptions& options = {}) {
  const auto [y, indices] = max_pool2d_with_indices(x, kernel, options);
  EXPECT_EQ(indices.dtype(), kInt64);
  return {values_of(y).values, indices.to_vector<int64_t>()};
}

// A 2 x 2 image in row-major order, or as channel 1 of 3 in channels-last order.
Tensor image(std::vector<double> values, DType dtype, bool channels_last) {
  const Tensor plane = tensor(values, {1, 1, 2, 2}, {.dtype = dtype});
  if (!channels_last) return plane;
  return plane.expand({1, 3, 2, 2}).contiguous(MemoryFormat::channels_last).narrow(1, 1, 1);
}

TEST(MaxPool, NUM_07_nan_infinities_and_ties) {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  for (DType dtype : {kFloat16, kBFloat16, kFloat32, kFloat64})
    for (bool last : {false, true}) {
      const Picked one = pick(image({1, nan, 5, 6}, dtype, last), 2);
      EXPECT_TRUE(std::isnan(one.values[0]));
      EXPECT_EQ(one.indices, (std::vector<int64_t>{1}));
      const Picked two = pick(image({nan, nan, 5, 6}, dtype, last), 2);
      EXPECT_TRUE(std::isnan(two.values[0]));
      EXPECT_EQ(two.indices, (std::vector<int64_t>{1}));
      const Picked low = pick(image({-inf, -inf, -inf, -inf}, dtype, last), 2);
      EXPECT_EQ(low.values, (std::vector<double>{-inf}));
      EXPECT_EQ(low.indices, (std::vector<int64_t>{0}));
      const Picked corners =
          pick(image({-inf, -inf, -inf, -inf}, dtype, last), 2, {.stride = Size2(2), .padding = 1});
      EXPECT_EQ(corners.values, (std::vector<double>(4, -inf)));
      EXPECT_EQ(corners.indices, (std::vector<int64_t>{0, 1, 2, 3}));
    }
}

TEST(MaxPool, NUM_07_the_gradient_of_ties_goes_to_the_first) {
  for (MemoryFormat format : {MemoryFormat::contiguous, MemoryFormat::channels_last}) {
    Tensor a = ones({1, 1, 2, 2}).contiguous(format).requires_grad_();
    max_pool2d(a, 2).sum().backward();
    EXPECT_EQ(values_of(a.grad()).values, (std::vector<double>{1, 0, 0, 0}));
    Tensor b = ones({1, 2, 3, 3}).contiguous(format).requires_grad_();
    max_pool2d(b, 2, {.stride = Size2(1)}).sum().backward();
    const std::vector<double> plane{1, 1, 0, 1, 1, 0, 0, 0, 0};
    const auto got = values_of(b.grad()).values;
    EXPECT_EQ(std::vector<double>(got.begin(), got.begin() + 9), plane);
    EXPECT_EQ(std::vector<double>(got.begin() + 9, got.end()), plane);
  }
}

TEST(MaxPool, the_gradient_of_half_types_is_rounded_once) {
  for (bool last : {false, true}) {
    Tensor x = zeros({1, 2, 5, 5}, kBFloat16);  // the largest of all nine windows is in the middle
    x.slice(2, 2, 3).slice(3, 2, 3).fill_(1);
    if (last) x = x.contiguous(MemoryFormat::channels_last);
    x.requires_grad_();
    Tensor g = ones({1, 2, 3, 3}, kBFloat16);
    g.slice(2, 0, 1).slice(3, 0, 1).fill_(256);  // 256 + 1 is 256 in bfloat16
    max_pool2d(x, 3, {.stride = Size2(1)}).backward(g);
    EXPECT_EQ(x.grad().to_vector<float>()[12], 264);
    EXPECT_EQ(x.grad().to_vector<float>()[37], 264);
  }
}

TEST(MaxPool, places_beyond_a_byte_in_large_windows) {
  Tensor x = zeros({1, 1, 17, 17});
  x.slice(2, 16, 17).slice(3, 16, 17).fill_(1);
  EXPECT_EQ(pick(x, 17).indices, (std::vector<int64_t>{288}));
  x.requires_grad_();
  max_pool2d(x, 17).backward(ones({1, 1, 1, 1}));
  EXPECT_EQ(x.grad().to_vector<float>()[288], 1);
}

TEST(MaxPool, indices_say_where_the_largest_is) {
  for (MemoryFormat format : {MemoryFormat::contiguous, MemoryFormat::channels_last}) {
    const Tensor x = randn({2, 5, 7, 6}).contiguous(format);
    const auto [y, indices] =
        max_pool2d_with_indices(x, {3, 2}, {.stride = Size2(2), .padding = 1, .dilation = {2, 1}});
    EXPECT_EQ(indices.sizes(), y.sizes());
    const RefArray values = values_of(y), at = values_of(indices), plane = values_of(x);
    const int64_t outputs = y.size(2) * y.size(3);
    for (int64_t i = 0; i < values.numel(); ++i)
      EXPECT_EQ(values[i], plane[i / outputs * 42 + static_cast<int64_t>(at[i])]);
    EXPECT_EQ(y.suggest_memory_format(), format);
  }
}

TEST(Pool, channels_last_gives_the_same_as_row_major) {
  const Tensor x = randn({2, 70, 9, 8});  // more channels than one block of lanes
  const Tensor same = x.contiguous(MemoryFormat::channels_last);
  EXPECT_EQ(values_of(max_pool2d(x, 3, {.stride = Size2(2), .padding = 1})).values,
            values_of(max_pool2d(same, 3, {.stride = Size2(2), .padding = 1})).values);
  EXPECT_EQ(values_of(avg_pool2d(x, 3, {.stride = Size2(2)})).values,
            values_of(avg_pool2d(same, 3, {.stride = Size2(2)})).values);
  EXPECT_EQ(avg_pool2d(same, 2).suggest_memory_format(), MemoryFormat::channels_last);
}

TEST(Pool, NUM_21_empty_batches) {
  EXPECT_EQ(max_pool2d(zeros({0, 1, 4, 4}), 2).sizes(), (Shape{0, 1, 2, 2}));
  EXPECT_EQ(avg_pool2d(zeros({0, 1, 4, 4}), 2).sizes(), (Shape{0, 1, 2, 2}));
}

TEST(Pool, names_what_is_wrong) {
  using ::gradus::testing::error_of;
  const Tensor x = zeros({1, 1, 4, 4});
  EXPECT_EQ(
      error_of([&] { max_pool2d(x, 2, {.padding = 2}); }),
      "E-ARG: max_pool2d: padding (2, 2) should be at least 0 and at most half of the kernel size (2, 2)");
  EXPECT_EQ(error_of([&] {
              max_pool2d(zeros({4, 4}), 2);
            }),
            "E-SHAPE: max_pool2d: expected a 3-D or 4-D input (N, C, H, W), got shape [4, 4]");
  EXPECT_GRADUS_ERROR(max_pool2d(x, 5), "E-SHAPE", "kernel of size 5");
  EXPECT_GRADUS_ERROR(max_pool2d(zeros({1, 1, 0, 4}), 1), "E-SHAPE", "[1, 1, 0, 4]");
  EXPECT_GRADUS_ERROR(avg_pool2d(x, 2, {.divisor_override = 0}), "E-ARG", "got 0");
  EXPECT_GRADUS_ERROR(avg_pool2d(zeros({1, 1, 4, 4}, kInt64), 2), "E-DTYPE", "int64");
  EXPECT_GRADUS_ERROR(adaptive_avg_pool2d(x, {-1, 2}), "E-ARG", "(-1, 2)");
  // Twice these, or their product with the kernel, would wrap around to something small.
  constexpr int64_t most = std::numeric_limits<int64_t>::max(), big = int64_t{1} << 62;
  EXPECT_GRADUS_ERROR(max_pool2d(x, 2, {.padding = most}), "E-ARG", "at most half of the kernel");
  EXPECT_GRADUS_ERROR(avg_pool2d(x, 2, {.padding = big}), "E-ARG", "at most half of the kernel");
  EXPECT_GRADUS_ERROR(max_pool2d(x, 5, {.dilation = big}), "E-ARG", "must be at most 2147483647");
  EXPECT_GRADUS_ERROR(conv2d(x, x, {}, {.padding = big}), "E-ARG", "must be at most 2147483647");
}

}  // namespace
}  // namespace gradus::optest
