#include <kernels/unscale_block.cuh>

#include "kernels/kernel_testing.h"

namespace gradus::kernels {
namespace {

template <class T>
struct UnscaleBody : ::testing::Test {};
TYPED_TEST_SUITE(UnscaleBody, FloatingTypes);

TYPED_TEST(UnscaleBody, ScalesAndFindsWhatIsNotFinite) {
  using T = TypeParam;
  const float inf = INFINITY, nan = std::numeric_limits<float>::quiet_NaN(), scale = 0.25f;
  for (const float odd : {1.0f, inf, -inf, nan}) {
    on_all_blocks<Unscale<T>>([&](Runner run) {
      alignas(16) T x[70], y[70];
      for (int i = 0; i < 70; ++i) x[i] = y[i] = static_cast<T>(static_cast<float>(i));
      y[68] = static_cast<T>(odd);
      float found = 0;
      Unscale<T> body{};
      body.items[0] = {x, true}, body.items[1] = {y + 1, false};
      body.chunks.push_back(70), body.chunks.push_back(69);
      body.inv_scale = &scale, body.found_inf = &found;
      run(body);
      EXPECT_EQ(found, odd == 1 ? 0 : 1) << odd;
      EXPECT_EQ(static_cast<float>(x[69]), static_cast<float>(static_cast<T>(69 * scale)));
      EXPECT_EQ(static_cast<float>(y[0]), 0);
      EXPECT_EQ(static_cast<float>(y[1]), 0.25f);
      EXPECT_EQ(static_cast<float>(y[69]), static_cast<float>(static_cast<T>(69 * scale)));
      found = 1;  // stays, though the second time all may be finite
      y[68] = static_cast<T>(1.0f);
      run(body);
      EXPECT_EQ(found, 1);
    });
  }
}

}  // namespace
}  // namespace gradus::kernels
