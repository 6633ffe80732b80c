#include <gradus/gradus.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace gradus {
namespace {

// Directions only: how busy a shared machine lets us be cannot be known.
TEST(Utilization, of_an_idle_sim_device_is_0_and_of_a_busy_one_is_more) {
  const Device device("sim:0");
  const Tensor x = ones({512, 512}, {.device = device});
  synchronize(device);
  utilization(device), utilization(Device("sim:1"));  // whatever was before
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(utilization(device), 0);
  for (int i = 0; i < 200; ++i) x.exp();
  synchronize(device);
  const int busy = utilization(device);
  EXPECT_GT(busy, 0);
  EXPECT_LE(busy, 100);
  EXPECT_EQ(utilization(Device("sim:1")), 0) << "the other device did nothing";
}

TEST(Utilization, of_the_cpu_is_this_processs) {
  utilization(Device());
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(50)) {
  }
  const int busy = utilization(Device());
  EXPECT_GT(busy, 0);
  EXPECT_LE(busy, 100);
}

}  // namespace
}  // namespace gradus
