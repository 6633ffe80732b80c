// Device memory that the host cannot touch: its raw allocator, and what a touch looks like.
#include <gradus/backends/sim/memory.h>
#include <gradus/backends/sim/sim_backend.h>
#include <gradus/gradus.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>

#include "support/expect_error.h"

namespace gradus::sim {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

TEST(SimMemory, hands_out_up_to_the_capacity_and_takes_back) {
  DeviceMemory memory;
  void* a = memory.allocate(0, 60 * kMiB, 100 * kMiB);
  ASSERT_TRUE(a);
  EXPECT_EQ(memory.allocate(0, 41 * kMiB, 100 * kMiB), nullptr);
  void* b = memory.allocate(0, 40 * kMiB, 100 * kMiB);
  ASSERT_TRUE(b);
  EXPECT_EQ(memory.used(0), 100 * kMiB);
  EXPECT_EQ(memory.used(1), 0u) << "each device has its own";
  EXPECT_TRUE(memory.allocate(1, 100 * kMiB, 100 * kMiB));
  EXPECT_EQ(memory.free(0, a), 60 * kMiB);
  EXPECT_EQ(memory.free(0, a), 0u) << "what was freed is unknown";
  EXPECT_EQ(memory.allocate(0, 60 * kMiB, 100 * kMiB), a) << "the gap is used again";
}

TEST(SimMemory, knows_the_ends_of_each_segment) {
  DeviceMemory memory;
  auto* a = static_cast<char*>(memory.allocate(2, 1000, kMiB));
  EXPECT_TRUE(memory.holds(2, a, 1000));
  EXPECT_TRUE(memory.holds(2, a + 999, 1));
  EXPECT_FALSE(memory.holds(2, a, 1001));
  EXPECT_FALSE(memory.holds(2, a + 1, 1000));
  EXPECT_FALSE(memory.holds(2, a - 1, 1));
  EXPECT_FALSE(memory.holds(1, a, 1)) << "another device's";
  EXPECT_FALSE(memory.holds(2, &memory, 1)) << "the host's";
  memory.free(2, a);
  EXPECT_FALSE(memory.holds(2, a, 1));
}

TEST(SimMemory, the_bytes_behind_an_address_are_fresh_after_free) {
  DeviceMemory memory;
  void* a = memory.allocate(0, kMiB, kMiB);
  *memory.bytes(a) = std::byte{7};
  memory.free(0, a);
  ASSERT_EQ(memory.allocate(0, kMiB, kMiB), a);
  EXPECT_EQ(*memory.bytes(a), std::byte{0});
}

class SimFault : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(SimFault, names_the_tensor_that_the_host_read) {
  EXPECT_DEATH(
      {
        const Tensor x = ones({3, 5}).to(Device("sim:1"));
        volatile float first = x.data<float>()[0];
        (void)first;
      },
      "host code touched the memory of sim:1: a float32 tensor of shape \\[3, 5\\]\\.\n"
      "The host cannot read or write device memory: copy the tensor first with \\.cpu\\(\\)");
}

TEST_F(SimFault, names_the_operation_where_only_that_is_known) {
  EXPECT_DEATH(
      {
        const Tensor y = ones({2, 2}, {.device = Device("sim:0")}) + 1.0;
        *static_cast<volatile float*>(y.raw_data()) = 1;
      },
      "host code touched the memory of sim:0: a float32 tensor of shape \\[2, 2\\], last used by 'add");
}

TEST_F(SimFault, leaves_other_faults_to_the_handler_that_was_there) {
  EXPECT_EXIT(
      {
        struct sigaction other {};
        other.sa_handler = [](int) { ::_exit(42); };
        ::sigaction(SIGSEGV, &other, nullptr);
        ones({1}).to(Device("sim:0"));
        void* page = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        *static_cast<volatile int*>(page) = 1;
      },
      ::testing::ExitedWithCode(42), "^$");
}

TEST_F(SimFault, a_system_call_on_device_memory_fails_with_efault) {
  const Tensor x = ones({3}).to(Device("sim:0"));
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_EQ(::write(ends[1], x.raw_data(), 4), -1);
  EXPECT_EQ(errno, EFAULT);
  ::close(ends[0]), ::close(ends[1]);
}

// As exit() does it, while a static object or another thread still asks the device for a value.
TEST(SimShutdown, what_is_asked_of_the_device_afterwards_is_an_error_and_no_wrong_value) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const Tensor x = ones({2}, {.device = Device("sim:0")});
        backend().stop();
        const std::string text = testing::error_of([&] { (x + 1.0).cpu(); });
        std::_Exit(text.starts_with("E-DEVICE-SHUTDOWN: sim:0: the process is ending") ? 5 : 6);
      },
      ::testing::ExitedWithCode(5), "");
}

}  // namespace
}  // namespace gradus::sim
