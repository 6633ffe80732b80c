#include <gradus/ops/dropout.h>
#include <gradus/ops/factories.h>

#include <kernels/dropout_block.cuh>

#include "kernels/kernel_testing.h"

namespace gradus::kernels {
namespace {

TEST(DropoutKernel, EveryBlockDropsTheSame) {
  const auto x = random_vector(200);
  std::vector<double> want;
  for (size_t i = 0; i < x.size(); ++i)
    want.push_back(PhiloxStream{3, 4}.uniform<float>(i) >= 0.3f ? static_cast<double>(x[i]) / 0.7 : 0.0);
  on_all_blocks<Dropout<float>>([&](Runner run) {
    std::vector<float> y(x.size());
    run(Dropout<float>{x.data(), y.data(), 200, 0.3, {3, 4}, nullptr, 0, 0});
    expect_close(y, want, 1e-6);
    const int64_t extra = 3;  // 1 + 3 = 4
    run(Dropout<float>{x.data(), y.data(), 200, 0.3, {3, 1}, &extra, 0, 0});
    expect_close(y, want, 1e-6);
  });
}

TEST(DropoutKernel, ChannelsLastDropsTheSameElements) {
  const int64_t n = 2, c = 3, plane = 5;
  std::vector<Half> x(30, Half(1.0f)), plain(30), last(30);
  run_serial(Dropout<Half>{x.data(), plain.data(), 30, 0.5, {1, 2}, nullptr, 0, 0});
  run_serial(Dropout<Half>{x.data(), last.data(), 30, 0.5, {1, 2}, nullptr, c, plane});
  for (int64_t i = 0; i < n * c * plane; ++i) {
    const int64_t at = i % plane, channel = i / plane % c, image = i / (plane * c);
    EXPECT_EQ(plain[static_cast<size_t>(i)].bits,
              last[static_cast<size_t>((image * plane + at) * c + channel)].bits);
  }
}

TEST(DropoutKernel, TheShareDroppedIsP) {
  const std::vector<float> x(20000, 1.0f);
  std::vector<float> y(x.size());
  run_serial(Dropout<float>{x.data(), y.data(), 20000, 0.25, {5, 6}, nullptr, 0, 0});
  const auto dropped = std::count(y.begin(), y.end(), 0.0f);
  EXPECT_TRUE(std::abs(dropped - 5000) <= 310) << dropped;  // five standard deviations
}

TEST(DropoutKernel, AtTheEnds) {
  const std::vector<float> x{1, -2, INFINITY, 4};
  std::vector<float> y(4);
  run_serial(Dropout<float>{x.data(), y.data(), 4, 0.0, {1, 1}, nullptr, 0, 0});
  EXPECT_EQ(y, x);
  run_serial(Dropout<float>{x.data(), y.data(), 4, 1.0, {1, 1}, nullptr, 0, 0});
  EXPECT_EQ(y[0], 0.0f);
  EXPECT_EQ(y[1], 0.0f);
  EXPECT_TRUE(std::isnan(y[2]));  // inf * 0, as in PyTorch
}

TEST(DropoutKernel, TheCpusLoopsDropTheSame) {
  const auto x = random_vector(2501);
  std::vector<float> y(x.size());
  run_serial(Dropout<float>{x.data(), y.data(), 2501, 0.3, {17, 0}, nullptr, 0, 0});
  manual_seed(17);
  EXPECT_EQ(dropout(tensor(x, {2501}), 0.3).to_vector<float>(), y);
}

}  // namespace
}  // namespace gradus::kernels
