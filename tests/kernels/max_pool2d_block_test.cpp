#include <kernels/max_pool2d_block.cuh>

#include "kernels/kernel_testing.h"

namespace gradus::kernels {
namespace {

const float kInf = INFINITY, kNaN = std::numeric_limits<float>::quiet_NaN();

struct Sizes {
  int64_t n, c, h, w;
};
Image4d nchw(Sizes s) { return {{s.n, s.c, s.h, s.w}, {s.c * s.h * s.w, s.h * s.w, s.w, 1}}; }
Image4d channels_last(Sizes s) { return {{s.n, s.c, s.h, s.w}, {s.c * s.h * s.w, 1, s.w * s.c, s.c}}; }
PoolWindow square(int64_t kernel, int64_t stride, int64_t padding = 0, int64_t dilation = 1) {
  return {{kernel, kernel}, {stride, stride}, {padding, padding}, {dilation, dilation}};
}
int64_t pooled(int64_t in, const PoolWindow& p, int axis) {
  return (in + 2 * p.padding[axis] - p.dilation[axis] * (p.kernel[axis] - 1) - 1) / p.stride[axis] + 1;
}

struct Pooled {
  std::vector<double> y, dx;
  std::vector<int64_t> index;
};

template <class T = float>
Pooled pool(Runner run, const std::vector<T>& x, Image4d in, Image4d out, PoolWindow window,
            const std::vector<T>& dy = {}) {
  std::vector<T> y(static_cast<size_t>(out.numel())), dx(x.size());
  Pooled r{{}, {}, std::vector<int64_t>(y.size())};
  run(MaxPool2dForward<T>{x.data(), y.data(), r.index.data(), in, out, window});
  for (const T v : y) r.y.push_back(static_cast<double>(v));
  if (!dy.empty()) run(MaxPool2dBackward<T>{dy.data(), r.index.data(), dx.data(), in, out, window});
  for (const T v : dx) r.dx.push_back(static_cast<double>(v));
  return r;
}

TEST(Num, NUM_07_max_pool_nan_inf_and_ties) {
  on_all_blocks<MaxPool2dForward<float>>([](Runner run) {
    const Image4d two = nchw({1, 1, 2, 2}), one = nchw({1, 1, 1, 1}), three = nchw({1, 1, 3, 3});
    const PoolWindow k2 = square(2, 2);
    Pooled r = pool<float>(run, {1, kNaN, 5, 6}, two, one, k2);
    EXPECT_TRUE(std::isnan(r.y[0]));
    EXPECT_EQ(r.index[0], 1);
    r = pool<float>(run, {kNaN, kNaN, 5, 6}, two, one, k2);
    EXPECT_TRUE(std::isnan(r.y[0]));
    EXPECT_EQ(r.index[0], 1);
    const std::vector<float> minus_inf(4, -kInf);
    r = pool<float>(run, minus_inf, two, one, k2);
    EXPECT_EQ(r.y[0], -kInf);
    EXPECT_EQ(r.index[0], 0);
    r = pool<float>(run, minus_inf, two, two, square(2, 2, 1));
    EXPECT_EQ(r.y, (std::vector<double>(4, -kInf)));
    EXPECT_EQ(r.index, (std::vector<int64_t>{0, 1, 2, 3}));
    r = pool<float>(run, {1, 1, 1, 1}, two, one, k2, {1});
    EXPECT_EQ(r.dx, (std::vector<double>{1, 0, 0, 0}));
    r = pool<float>(run, std::vector<float>(9, 1.0f), three, two, square(2, 1), {1, 1, 1, 1});
    EXPECT_EQ(r.dx, (std::vector<double>{1, 1, 0, 1, 1, 0, 0, 0, 0}));
  });
}

// All places of every window, in double; the gradient scattered from the indices.
template <class T>
void check(Sizes s, PoolWindow p, bool last) {
  const Sizes o{s.n, s.c, pooled(s.h, p, 0), pooled(s.w, p, 1)};
  const Image4d in = last ? channels_last(s) : nchw(s), out = last ? channels_last(o) : nchw(o);
  const auto x = random_vector<T>(in.numel()), dy = random_vector<T>(out.numel(), 1);
  std::vector<double> y(dy.size()), dx(x.size());
  std::vector<int64_t> index(dy.size());
  for (int64_t i = 0; i < out.numel(); ++i) {
    const int64_t ow = i % o.w, oh = i / o.w % o.h, c = i / (o.w * o.h) % o.c, n = i / (o.w * o.h * o.c);
    double best = -kInf;
    int64_t best_at = -1;
    for (int64_t kh = 0; kh < p.kernel[0]; ++kh) {
      for (int64_t kw = 0; kw < p.kernel[1]; ++kw) {
        const int64_t h = oh * p.stride[0] - p.padding[0] + kh * p.dilation[0];
        const int64_t w = ow * p.stride[1] - p.padding[1] + kw * p.dilation[1];
        if (h < 0 || h >= s.h || w < 0 || w >= s.w) continue;
        const auto v = static_cast<double>(x[static_cast<size_t>(in.at(n, c, h, w))]);
        if (v > best) best = v, best_at = h * s.w + w;
      }
    }
    const auto at = static_cast<size_t>(out.at(n, c, oh, ow));
    y[at] = best;
    index[at] = best_at;
    dx[static_cast<size_t>(in.at(n, c, best_at / s.w, best_at % s.w))] += static_cast<double>(dy[at]);
  }
  on_all_blocks<MaxPool2dForward<T>>([&](Runner run) {
    const Pooled got = pool<T>(run, x, in, out, p, dy);
    expect_close(got.y, y, 0);
    EXPECT_EQ(got.index, index);
    expect_close(got.dx, dx, 2 * tolerance_of<T>());
  });
}

template <class T>
struct MaxPool2dKernel : ::testing::Test {};
TYPED_TEST_SUITE(MaxPool2dKernel, FloatingTypes);

TYPED_TEST(MaxPool2dKernel, MatchesDouble) { check<TypeParam>({2, 3, 6, 6}, square(2, 2), false); }
TYPED_TEST(MaxPool2dKernel, ChannelsLast) { check<TypeParam>({2, 3, 6, 6}, square(2, 2), true); }
TYPED_TEST(MaxPool2dKernel, OverlapPaddingAndDilation) {
  check<TypeParam>({1, 2, 9, 7}, square(3, 2, 1), true);
  check<TypeParam>({1, 2, 9, 7}, square(3, 1, 1, 2), false);
  check<TypeParam>({1, 1, 7, 8}, {{3, 2}, {2, 3}, {1, 0}, {1, 2}}, false);
}

}  // namespace
}  // namespace gradus::kernels
