// What the backend asks of several devices, and of NVML about them: of a stand-in for either.
#include <cuda_on_host/runtime.h>
#include <gradus/gradus.h>
#include <gtest/gtest.h>

namespace gradus {
namespace {

const Device kFirst(DeviceType::cuda, 0), kSecond(DeviceType::cuda, 1);

TEST(CudaDevices, nvml_is_asked_about_the_device_at_its_pci_address) {
  EXPECT_EQ(utilization(kFirst), 41);
  EXPECT_EQ(utilization(kSecond), 42);
  const Telemetry first = telemetry(kFirst), second = telemetry(kSecond);
  EXPECT_EQ(first.clock_rate, 1401);
  EXPECT_EQ(first.memory_clock_rate, 2601);
  EXPECT_EQ(first.power_draw, 250001);
  EXPECT_EQ(first.temperature, 61);
  EXPECT_EQ(second.clock_rate, 1502);
  EXPECT_EQ(second.temperature, 92);
}

TEST(CudaDevices, a_power_limit_is_no_throttling_and_heat_is) {
  const Telemetry capped = telemetry(kFirst), hot = telemetry(kSecond);
  EXPECT_EQ(capped.throttle, "");
  EXPECT_TRUE(capped.power_capped);
  EXPECT_EQ(hot.throttle, "software thermal slowdown, hardware thermal slowdown");
  EXPECT_FALSE(hot.power_capped);
}

TEST(CudaDevices, the_first_copy_between_two_devices_lets_each_reach_the_other) {
  const Tensor there = arange(5).to(kFirst).to(kSecond);
  EXPECT_EQ(there.to_vector<int64_t>(), (std::vector<int64_t>{0, 1, 2, 3, 4}));
  const std::vector<std::pair<int, int>> both = {{0, 1}, {1, 0}};
  auto enabled = cuda_on_host::peer_accesses();
  std::sort(enabled.begin(), enabled.end());
  EXPECT_EQ(enabled, both);
  there.to(kFirst);
  EXPECT_EQ(cuda_on_host::peer_accesses().size(), 2u) << "asked for once";
  EXPECT_EQ(current_device(DeviceType::cuda), kFirst);
}

}  // namespace
}  // namespace gradus
