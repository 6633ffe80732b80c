#include <gradus/gradus.h>
#include <gradus/ops/unscale.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/expect_error.h"

namespace gradus {
namespace {

class Unscale : public ::testing::TestWithParam<DeviceType> {
 protected:
  Tensor scalar(double value) const { return full({}, value, {.device = device_}); }
  Device device_{GetParam()};
};

std::vector<DeviceType> device_types() {
  std::vector<DeviceType> types;
  for (const DeviceType type : {DeviceType::cpu, DeviceType::sim, DeviceType::cuda})
    if (device_count(type) > 0) types.push_back(type);
  return types;
}
INSTANTIATE_TEST_SUITE_P(devices, Unscale, ::testing::ValuesIn(device_types()),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST_P(Unscale, many_gradients_of_several_dtypes) {
  std::vector<Tensor> grads;  // more than one launch takes
  for (int i = 0; i < 30; ++i)
    grads.push_back(full({3, i % 4}, i + 1, {.dtype = i < 28 ? kFloat32 : kFloat16, .device = device_}));
  const Tensor found = scalar(0);
  unscale_(grads, found, scalar(0.5));
  for (size_t i = 0; i < grads.size(); ++i)
    for (const double g : grads[i].to_vector<double>()) EXPECT_EQ(g, static_cast<double>(i + 1) / 2);
  EXPECT_EQ(found.item<float>(), 0);
}

TEST_P(Unscale, says_whether_an_element_is_not_finite) {
  for (const double odd : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
    for (const DType dtype : {kFloat16, kBFloat16, kFloat32, kFloat64}) {
      const Tensor fine = ones({5}, dtype, device_), bad = ones({5000}, dtype, device_);
      bad.select(0, 4321).fill_(odd);
      const Tensor found = scalar(0);
      unscale_({fine}, found, scalar(2));
      EXPECT_EQ(found.item<float>(), 0);
      unscale_({fine, bad}, found, scalar(2));
      EXPECT_EQ(found.item<float>(), 1);
      unscale_({fine}, found, scalar(2));  // is not taken back
      EXPECT_EQ(found.item<float>(), 1);
      EXPECT_EQ(fine.to_vector<double>(), std::vector<double>(5, 8));
    }
  }
}

TEST(UnscaleErrors, say_what_is_wrong) {
  const Tensor g = ones({2, 3}), one = ones({});
  EXPECT_GRADUS_ERROR(unscale_({g.to(kInt64)}, one, one), "E-DTYPE",
                      "unscale_: expected floating point gradients, got int64");
  EXPECT_GRADUS_ERROR(unscale_({g}, one.to(kFloat64), one), "E-DTYPE",
                      "unscale_: found_inf must be float32, got float64");
  EXPECT_GRADUS_ERROR(unscale_({g}, one, ones({2})), "E-SHAPE",
                      "unscale_: inv_scale must have one element, got shape [2]");
  EXPECT_GRADUS_ERROR(unscale_({ones({1, 3}).expand({2, 3})}, one, one), "E-LAYOUT", "has gaps in memory");
}

}  // namespace
}  // namespace gradus
