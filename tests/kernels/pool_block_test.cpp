#include <kernels/avg_pool2d_block.cuh>
#include <kernels/max_pool2d_block.cuh>

#include "kernels/kernel_testing.h"

namespace gradus::kernels {
namespace {

constexpr float kInf = INFINITY, kNaN = std::numeric_limits<float>::quiet_NaN();

/// An image batch (N, C, H, W) in one of the two memory orders.
template <class T>
struct Image {
  std::vector<T> data;
  TensorArg arg;
  Image(const Shape& sizes, bool channels_last, const std::vector<T>& values = {}) : data(values) {
    const int64_t c = sizes[1], h = sizes[2], w = sizes[3];
    data.resize(static_cast<size_t>(sizes.numel()));
    arg.sizes = sizes;
    arg.strides = channels_last ? Shape{c * h * w, 1, w * c, c} : Shape{c * h * w, h * w, w, 1};
    arg.dtype = std::is_same_v<T, uint8_t> ? DType::uint8 : DType::int32;  // of positions only
  }
  TensorArg at() {
    arg.address = data.data();
    return arg;
  }
  T& operator()(int64_t n, int64_t c, int64_t h, int64_t w) {
    const Shape& s = arg.strides;
    return data[static_cast<size_t>(n * s[0] + c * s[1] + h * s[2] + w * s[3])];
  }
};

PoolShape window(Shape kernel, Shape stride, Shape padding = {0, 0}, Shape dilation = {1, 1}) {
  return {{{stride[0], stride[1]}, {padding[0], padding[1]}, {dilation[0], dilation[1]}, 1},
          {kernel[0], kernel[1]},
          false};
}
const PoolShape kAdaptive{{{1, 1}, {0, 0}, {1, 1}, 1}, {9, 9}, true};

struct Case {
  Shape x;
  int64_t oh, ow;
  PoolShape shape;
};
const Case kCases[] = {
    {{1, 2, 6, 6}, 3, 3, window({2, 2}, {2, 2})},
    {{2, 8, 6, 6}, 3, 3, window({2, 2}, {2, 2})},
    {{1, 16, 9, 7}, 5, 4, window({3, 3}, {2, 2}, {1, 1})},
    {{1, 2, 9, 7}, 7, 5, window({3, 3}, {1, 1}, {1, 1}, {2, 2})},
    {{1, 1, 7, 8}, 4, 2, window({3, 2}, {2, 3}, {1, 0}, {1, 2})},
    {{1, 4, 5, 5}, 3, 3, window({2, 2}, {2, 2}, {0, 0})},  // ceil_mode: windows reach past the end
    {{1, 2, 5, 7}, 1, 1, window({5, 7}, {100, 100})},
    {{2, 4, 7, 5}, 3, 4, kAdaptive},
    {{1, 8, 3, 3}, 5, 7, kAdaptive},
};

// Calls f(input row, input column, place in the window) for the window of output (i, j).
template <class F>
void for_each_input(const Case& c, int64_t i, int64_t j, const F& f) {
  const auto rows = c.shape.span(0, i, c.x[2], c.oh), columns = c.shape.span(1, j, c.x[3], c.ow);
  for (int64_t k = 0; k < rows.count; ++k) {
    for (int64_t l = 0; l < columns.count; ++l) {
      const int64_t h = rows.start + k * c.shape.window.dilation[0];
      const int64_t w = columns.start + l * c.shape.window.dilation[1];
      if (h >= 0 && h < c.x[2] && w >= 0 && w < c.x[3]) f(h, w, k * c.shape.kernel[1] + l);
    }
  }
}
template <class F>
void for_each_output(const Case& c, const F& f) {
  for (int64_t n = 0; n < c.x[0]; ++n)
    for (int64_t q = 0; q < c.x[1]; ++q)
      for (int64_t i = 0; i < c.oh; ++i)
        for (int64_t j = 0; j < c.ow; ++j) f(n, q, i, j);
}
std::vector<double> doubles(const auto& v) {
  std::vector<double> d;
  for (const auto& value : v) d.push_back(static_cast<double>(value));
  return d;
}

// Bodies whose threads never meet: the small case on all blocks, the others on one.
template <class Body, class Test>
void on_blocks(const Case& c, const Test& test) {
  if (&c == kCases)
    on_all_blocks<Body>([&](Runner run) { test(run, kMaxOffset); });
  else
    for (const int64_t limit : {int64_t{40}, kMaxOffset}) test(Runner{0}, limit);
}

template <class T, class P>
void check_max(const Case& c, bool last) {
  const Shape out{c.x[0], c.x[1], c.oh, c.ow};
  Image<T> x(c.x, last, random_vector<T>(c.x.numel())), gy(out, last, random_vector<T>(out.numel(), 1));
  Image<P> positions(out, last);
  Image<double> y(out, last), gx(c.x, last);
  Image<int64_t> indices(out, last);
  for_each_output(c, [&](int64_t n, int64_t q, int64_t i, int64_t j) {
    double best = -kInf;
    int64_t h = 0, w = 0;
    for_each_input(c, i, j, [&](int64_t r, int64_t s, int64_t place) {
      const auto v = static_cast<double>(x(n, q, r, s));
      if (v > best) best = v, h = r, w = s, positions(n, q, i, j) = static_cast<P>(place);
    });
    y(n, q, i, j) = best;
    indices(n, q, i, j) = h * c.x[3] + w;
    gx(n, q, h, w) += static_cast<double>(gy(n, q, i, j));
  });
  on_blocks<MaxPool2d<T, 1>>(c, [&](Runner run, int64_t limit) {
    Image<T> got(out, last), got_gx(c.x, last), picked(out, last);
    Image<P> where(out, last);
    Image<int64_t> got_indices(out, last);
    run_max_pool<T>({x.at(), got.at(), where.at(), c.shape}, run, limit);
    EXPECT_EQ(where.data, positions.data);
    expect_close(got.data, y.data, 0);
    run_max_pool_grad<T>({gy.at(), where.at(), got_gx.at(), c.shape}, run, limit);
    expect_close(got_gx.data, gx.data, 4 * tolerance_of<T>());
    run_max_pool_pick<T>({x.at(), where.at(), picked.at(), c.shape}, run, limit);
    EXPECT_EQ(doubles(picked.data), y.data);
    run_max_pool_indices({where.at(), got_indices.at(), c.x[2], c.x[3], c.shape}, run, limit);
    EXPECT_EQ(got_indices.data, indices.data);
  });
}

template <class T>
void check_avg(const Case& c, bool last, bool count_include_pad, int64_t divisor) {
  const Shape out{c.x[0], c.x[1], c.oh, c.ow};
  Image<T> x(c.x, last, random_vector<T>(c.x.numel())), gy(out, last, random_vector<T>(out.numel(), 1));
  Image<double> y(out, last), gx(c.x, last);
  for_each_output(c, [&](int64_t n, int64_t q, int64_t i, int64_t j) {
    const auto rows = c.shape.span(0, i, c.x[2], c.oh), columns = c.shape.span(1, j, c.x[3], c.ow);
    double sum = 0;
    int64_t inside = 0, padded = 0;
    for_each_input(c, i, j, [&](int64_t r, int64_t s, int64_t) {
      sum += static_cast<double>(x(n, q, r, s));
      ++inside;
    });
    for (int64_t r = rows.start; r < rows.start + rows.count; ++r)  // with the padding, but no farther
      for (int64_t s = columns.start; s < columns.start + columns.count; ++s)
        padded += r < c.x[2] + c.shape.window.padding[0] && s < c.x[3] + c.shape.window.padding[1];
    const int64_t by = divisor > 0 ? divisor : count_include_pad ? padded : inside;
    y(n, q, i, j) = sum / static_cast<double>(by);
    for_each_input(c, i, j, [&](int64_t r, int64_t s, int64_t) {
      gx(n, q, r, s) += static_cast<double>(gy(n, q, i, j)) / static_cast<double>(by);
    });
  });
  on_blocks<AvgPool2d<T, 1>>(c, [&](Runner run, int64_t limit) {
    Image<T> got(out, last), got_gx(c.x, last);
    run_avg_pool<T>({x.at(), got.at(), c.shape, count_include_pad, divisor}, run, limit);
    expect_close(got.data, y.data, 4 * tolerance_of<T>());
    run_avg_pool_grad<T>({gy.at(), got_gx.at(), c.shape, count_include_pad, divisor}, run, limit);
    expect_close(got_gx.data, gx.data, 4 * tolerance_of<T>());
  });
}

template <class T>
struct PoolKernel : ::testing::Test {};
TYPED_TEST_SUITE(PoolKernel, FloatingTypes);

TYPED_TEST(PoolKernel, MaxMatchesDouble) {
  for (const Case& c : kCases)
    for (const bool last : {false, true}) check_max<TypeParam, uint8_t>(c, last);
}
TYPED_TEST(PoolKernel, MaxWithWidePositions) {
  for (const bool last : {false, true}) check_max<TypeParam, int32_t>(kCases[2], last);
}
TYPED_TEST(PoolKernel, AverageMatchesDouble) {
  for (const Case& c : kCases) {
    if (c.shape.window.dilation[0] != 1 || c.shape.window.dilation[1] != 1) continue;  // there is none
    for (const bool last : {false, true}) check_avg<TypeParam>(c, last, last, 0);
  }
}
TEST(PoolEdges, WhatAnAverageIsDividedBy) {
  check_avg<float>(kCases[2], true, false, 0);
  check_avg<float>(kCases[2], false, true, 0);
  check_avg<float>(kCases[2], false, true, 5);
}

// Windows of 2 x 2 in steps of `stride`.
struct Small {
  std::vector<float> y, gx;
  std::vector<uint8_t> positions;
};
Small pool(Runner run, int64_t side, const std::vector<float>& values, int64_t stride, int64_t padding,
           const std::vector<float>& dy = {}) {
  const int64_t o = (side + 2 * padding - 2) / stride + 1;
  const PoolShape shape = window({2, 2}, {stride, stride}, {padding, padding});
  Image<float> x({1, 1, side, side}, false, values), y({1, 1, o, o}, false), gx = x;
  Image<uint8_t> positions({1, 1, o, o}, false);
  run_max_pool<float>({x.at(), y.at(), positions.at(), shape}, run);
  Image<float> gy({1, 1, o, o}, false, dy);
  run_max_pool_grad<float>({gy.at(), positions.at(), gx.at(), shape}, run);
  return {y.data, gx.data, positions.data};
}

TEST(Num, NUM_07_max_pool_nan_inf_and_ties) {
  on_all_blocks<MaxPool2d<float, 1>>([](Runner run) {
    Small r = pool(run, 2, {1, kNaN, 5, 6}, 2, 0);
    EXPECT_TRUE(std::isnan(r.y[0]));
    EXPECT_EQ(r.positions[0], 1);
    r = pool(run, 2, {kNaN, kNaN, 5, 6}, 2, 0);
    EXPECT_TRUE(std::isnan(r.y[0]));
    EXPECT_EQ(r.positions[0], 1);
    const std::vector<float> minus_inf(4, -kInf);
    r = pool(run, 2, minus_inf, 2, 0);
    EXPECT_EQ(r.y[0], -kInf);
    EXPECT_EQ(r.positions[0], 0);
    r = pool(run, 2, minus_inf, 2, 1);
    EXPECT_EQ(r.y, minus_inf);
    EXPECT_EQ(r.positions, (std::vector<uint8_t>{3, 2, 1, 0}));
    r = pool(run, 2, {1, 1, 1, 1}, 2, 0, {1});
    EXPECT_EQ(r.gx, (std::vector<float>{1, 0, 0, 0}));
    r = pool(run, 3, std::vector<float>(9, 1.0f), 1, 0, {1, 1, 1, 1});
    EXPECT_EQ(r.gx, (std::vector<float>{1, 1, 0, 1, 1, 0, 0, 0, 0}));
  });
}

TEST(PoolEdges, SidesBeyondTheLimitAreRefused) {
  const PoolShape far = window({2, 2}, {PoolAxis::kLimit, 1});
  try {
    PoolAxis::of("max_pool2d", far, 0, 4, 1);
    FAIL() << "nothing thrown";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("not implemented on cuda for sides of 536870912"), std::string::npos)
        << e.what();
  }
}

}  // namespace
}  // namespace gradus::kernels
