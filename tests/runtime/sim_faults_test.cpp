// Failures on request: what GRADUS_SIM_FAIL_ALLOCATION and GRADUS_SIM_LOSE_DEVICE do.
#include <gradus/ops/factories.h>
#include <gradus/runtime/caching_allocator.h>
#include <runtime/device_contract.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

namespace gradus::contract {
namespace {

using testing::error_of;

const Device kSim{DeviceType::sim};

TEST(SimFaults, the_nth_allocation_fails_and_no_other) {
  const sim::OptionsGuard guard([](auto& o) { o.fail_allocation = 3; });
  for (int i = 1; i <= 6; ++i) {
    void* data = runtime::backend(kSim).allocate(0, 512);
    EXPECT_EQ(data == nullptr, i == 3) << i;
    if (data) runtime::backend(kSim).free(0, data);
  }
}

TEST(SimFaults, the_count_starts_when_the_options_come_into_force) {
  for (int round = 0; round < 2; ++round) {
    const sim::OptionsGuard guard([](auto& o) { o.fail_allocation = 1; });
    EXPECT_EQ(runtime::backend(kSim).allocate(0, 512), nullptr);
  }
}

TEST(SimFaults, the_caching_allocator_tries_again_before_it_gives_up) {
  const sim::OptionsGuard guard([](auto& o) { o.fail_allocation = 1; });
  const Stream own = Stream::create(kSim);  // whose pool is empty
  const MemoryStats before = memory_stats(kSim);
  const runtime::Allocation allocation = runtime::allocate_memory(512, own);
  const MemoryStats after = memory_stats(kSim);
  EXPECT_TRUE(allocation.data);
  EXPECT_EQ(after.retries - before.retries, 1);
  EXPECT_EQ(after.ooms - before.ooms, 0);
  runtime::free_memory(allocation);
}

TEST(SimFaults, a_lost_device_answers_no_call_until_it_is_reset) {
  const Buffer y(kSim), other(Device(DeviceType::sim, 1));
  const Stream s = Stream::create(kSim);
  {
    const sim::OptionsGuard guard([](auto& o) { o.lose_device = 3; });
    launch_affine(s, y, y, 0, 1);
    launch_affine(s, y, y, 1, 1);
    EXPECT_EQ(y.value(), 2);
    EXPECT_GRADUS_ERROR(launch_affine(s, y, y, 0, 9), "E-DEVICE-LOST", "sim:0: the device is lost");
    EXPECT_GRADUS_ERROR(launch_affine(s, y, y, 0, 9), "E-DEVICE-LOST", "sim:0: the device is lost");
    EXPECT_GRADUS_ERROR(s.synchronize(), "E-DEVICE-LOST", "sim:0: the device is lost");
    EXPECT_GRADUS_ERROR(runtime::allocate_memory(size_t{1} << 24, s), "E-DEVICE-LOST", "the device is lost");
    launch_affine(Stream{other.device()}, other, other, 0, 7);
    EXPECT_EQ(other.value(), 7);
  }
  EXPECT_GRADUS_ERROR(s.query(), "E-DEVICE-LOST", "the device is lost");  // options do not mend it
  sim::reset_device(0);
  launch_affine(s, y, y, 0, 5);
  s.synchronize();
  EXPECT_EQ(y.value(), 5);
}

TEST(SimFaults, a_reset_passes_over_what_is_queued) {
  const Buffer x(kSim), y(kSim, 4, 3);
  const Stream s = Stream::create(kSim);
  Gate gate(kSim);
  launch_gated(s, x, gate);
  launch_affine(s, y, y, 0, 9);
  gate.wait_until_reached();
  EXPECT_TRUE(waits_for(gate, [&] { sim::reset_device(0); }));  // what runs already is waited for
  EXPECT_TRUE(s.query());
  EXPECT_EQ(y.value(), 3);
}

TEST(SimFaults, a_device_that_there_is_not_cannot_be_reset) {
  EXPECT_GRADUS_ERROR(sim::reset_device(8), "E-DEVICE-ORDINAL", "invalid device ordinal: 8");
  EXPECT_GRADUS_ERROR(sim::reset_device(-1), "E-DEVICE-ORDINAL", "invalid device ordinal: -1");
}

TEST(SimFaults, a_kernel_that_uses_memory_that_was_given_back_is_an_illegal_access) {
  const Buffer y(kSim);
  const Stream s = Stream::create(kSim);
  void* const gone = runtime::backend(kSim).allocate(0, 512);
  runtime::backend(kSim).free(0, gone);
  launch_add(s, gone, y);
  EXPECT_GRADUS_ERROR(
      s.synchronize(), "E-ILLEGAL-ADDRESS",
      "add: an illegal memory access was encountered on sim:0: operand 1, a float32 tensor of "
      "shape [4], is not in memory of this device");
  sim::reset_device(0);
}

TEST(SimFaults, what_belongs_to_a_device_that_is_taken_away_can_still_end) {
  auto more = std::make_unique<sim::OptionsGuard>([](auto& o) { o.devices = 4; });
  const Device last("sim:3");
  const auto event = std::make_unique<Event>(last);
  const Tensor tensor = ones({4}, {.device = last});
  event->record(Stream{last});
  more.reset();
  EXPECT_GRADUS_ERROR(synchronize(last), "E-DEVICE-ORDINAL", "invalid device ordinal: sim:3");
}

// Statics that a kernel made must not be gone while the compute engine runs.
TEST(SimExit, with_work_queued_is_clean) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const Tensor x = ones({512, 512}, {.device = kSim});
        for (int i = 0; i < 200; ++i) x.exp();
        std::exit(7);
      },
      ::testing::ExitedWithCode(7), "^$");
}

TEST(SimExit, does_not_wait_for_a_copy_over_a_slow_link) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const Buffer y(kSim, 4);
        const Pinned pinned(kSim, 4);
        sim::Options slow = sim::options();
        slow.link = 1;  // 16 bytes in 16 seconds
        sim::configure(slow);
        ::alarm(10);
        copy_in(Stream::create(kSim), y, pinned.data());
        ::usleep(200'000);  // the copy has begun, or else it proves nothing
        std::exit(7);
      },
      ::testing::ExitedWithCode(7), "^$");
}

TEST(SimFork, the_parents_device_is_refused_in_a_child) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const Tensor x = ones({2}, {.device = kSim});
        synchronize(kSim);
        const pid_t child = ::fork();
        if (child == 0) {
          ::alarm(10);
          ::_exit(error_of([&] { (x + 1.0).cpu(); }).starts_with("E-FORK: sim: cannot re-initialize") ? 8
                                                                                                      : 9);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        std::_Exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
      },
      ::testing::ExitedWithCode(8), "");
}

TEST(SimRunAhead, a_host_is_a_bounded_number_of_launches_ahead) {
  const Buffer y(kSim);
  const Stream s = Stream::create(kSim);
  Gate gate(kSim);
  launch_gated(s, y, gate);
  EXPECT_TRUE(waits_for(gate, [&] {
    for (int i = 0; i < 1000; ++i) launch_affine(s, y, y, 1, 1);
  }));
  EXPECT_EQ(y.value(), 1001);
}

}  // namespace
}  // namespace gradus::contract
