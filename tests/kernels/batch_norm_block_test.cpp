#include <kernels/batch_norm_block.cuh>

#include "kernels/kernel_testing.h"

namespace gradus::kernels {
namespace {

template <class T>
struct BatchNormKernels : ::testing::Test {};
TYPED_TEST_SUITE(BatchNormKernels, FloatingTypes);

// By the definition, in double.
struct Result {
  std::vector<double> y, dx, mean, variance, dweight, dbias;
};

template <class T>
Result reference(const ChannelLayout& layout, const std::vector<T>& x, const std::vector<T>& dy,
                 const std::vector<ComputeType<T>>& w, const std::vector<ComputeType<T>>& b, double eps) {
  const auto channels = static_cast<size_t>(layout.channels);
  Result r{std::vector<double>(x.size()), std::vector<double>(x.size()), std::vector<double>(channels),
           std::vector<double>(channels), std::vector<double>(channels), std::vector<double>(channels)};
  const auto rows = static_cast<double>(layout.rows);
  const auto each = [&](auto f) {
    for (int64_t c = 0; c < layout.channels; ++c)
      for (int64_t row = 0; row < layout.rows; ++row)
        f(static_cast<size_t>(layout.at(row, c)), static_cast<size_t>(c));
  };
  each([&](size_t i, size_t c) { r.mean[c] += static_cast<double>(x[i]) / rows; });
  each([&](size_t i, size_t c) {
    r.variance[c] += std::pow(static_cast<double>(x[i]) - r.mean[c], 2) / rows;
  });
  const auto normal = [&](size_t i, size_t c) {
    return (static_cast<double>(x[i]) - r.mean[c]) / std::sqrt(r.variance[c] + eps);
  };
  each([&](size_t i, size_t c) {
    r.y[i] = normal(i, c) * static_cast<double>(w[c]) + static_cast<double>(b[c]);
    r.dbias[c] += static_cast<double>(dy[i]);
    r.dweight[c] += static_cast<double>(dy[i]) * normal(i, c);
  });
  each([&](size_t i, size_t c) {
    r.dx[i] = static_cast<double>(w[c]) / std::sqrt(r.variance[c] + eps) *
              (static_cast<double>(dy[i]) - r.dbias[c] / rows - normal(i, c) * r.dweight[c] / rows);
  });
  return r;
}

constexpr double kEps = 1e-2;
const ChannelLayout kLayouts[] = {{6, 2, 3, false}, {7, 33, 1, true}, {9, 1, 9, false}};

TYPED_TEST(BatchNormKernels, MatchDouble) {
  using T = TypeParam;
  using C = ComputeType<T>;
  for (const ChannelLayout& layout : kLayouts) {
    const int64_t n = layout.rows * layout.channels;
    const auto channels = static_cast<size_t>(layout.channels);
    const auto x = random_vector<T>(n), dy = random_vector<T>(n, 1);
    const auto w = random_vector<C>(layout.channels, 2), b = random_vector<C>(layout.channels, 3);
    const Result want = reference(layout, x, dy, w, b, kEps);
    on_all_blocks<ChannelMoments<T>>([&](Runner run) {
      for (const int64_t part_rows : {4, 100}) {
        const ChannelTiles tiles{layout, part_rows};
        const auto parts = static_cast<size_t>(tiles.parts());
        std::vector<Moments> moments(parts * channels);
        std::vector<C> mean(channels), rstd(channels), running_mean(channels), running_var(channels, C{1}),
            dw(channels), db(channels);
        std::vector<T> y(x.size()), dx(x.size());
        std::vector<double> sums(parts * 2 * channels);
        run(ChannelMoments<T>{x.data(), moments.data(), tiles});
        run(ChannelMomentsSum<C>{
            moments.data(),
            {running_mean.data(), running_var.data(), mean.data(), rstd.data(), 0.25, kEps},
            layout.channels,
            tiles.parts()});
        std::vector<double> want_mean(channels), want_var(channels);
        for (size_t c = 0; c < channels; ++c) {
          want_mean[c] = 0.25 * want.mean[c];
          want_var[c] = 0.75 + 0.25 * want.variance[c] * static_cast<double>(layout.rows) /
                                   static_cast<double>(layout.rows - 1);
        }
        expect_close(mean, want.mean, 1e-5);
        expect_close(running_mean, want_mean, 1e-5);
        expect_close(running_var, want_var, 1e-5);
        run(ChannelNormalise<T>{x.data(), mean.data(), rstd.data(), w.data(), b.data(), y.data(), layout});
        expect_close(y, want.y, 2 * tolerance_of<T>());
        run(ChannelGradientSums<T>{x.data(), dy.data(), mean.data(), rstd.data(), sums.data(), tiles});
        run(ChannelGradientTotals<C>{sums.data(), db.data(), dw.data(), layout.channels, tiles.parts()});
        expect_close(dw, want.dweight, 1e-5);
        expect_close(db, want.dbias, 1e-5);
        run(ChannelGradient<T>{x.data(), dy.data(), mean.data(), rstd.data(), w.data(), db.data(), dw.data(),
                               dx.data(), layout});
        expect_close(dx, want.dx, 4 * tolerance_of<T>());
      }
    });
  }
}

TEST(Moments, OfPartsAreThoseOfTheWhole) {
  Moments total;
  total.add({});
  total.add({2, 20001, 0.5});  // 10000, 10001
  total.add({2, 20005, 0.5});  // 10002, 10003
  EXPECT_EQ(total.count, 4);
  EXPECT_EQ(total.sum, 40006);
  EXPECT_EQ(total.squares, 5);
}

}  // namespace
}  // namespace gradus::kernels
