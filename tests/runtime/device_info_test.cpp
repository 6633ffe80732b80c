#include <gradus/runtime/backend.h>
#include <gradus/runtime/caching_allocator.h>
#include <gradus/runtime/device_info.h>
#include <gradus/runtime/stream.h>
#include <support/expect_error.h>

#include <stdexcept>
#include <thread>

namespace gradus {
namespace {

const Device kSim0(DeviceType::sim, 0), kSim1(DeviceType::sim, 1);

TEST(DeviceInfo, what_is_available) {
  EXPECT_TRUE(is_available(DeviceType::cpu));
  EXPECT_TRUE(is_available(DeviceType::sim));
  EXPECT_TRUE(is_available());
  EXPECT_GE(device_count(DeviceType::sim), 2);
  EXPECT_EQ(is_available(DeviceType::cuda), device_count(DeviceType::cuda) > 0);
  EXPECT_EQ(current_accelerator(),
            Device(is_available(DeviceType::cuda) ? DeviceType::cuda : DeviceType::sim, 0));
}

TEST(DeviceInfo, a_name_without_an_index_is_the_current_device) {
  EXPECT_EQ(current_device(DeviceType::sim), kSim0);
  set_device(kSim1);
  EXPECT_EQ(current_device(DeviceType::sim), kSim1);
  EXPECT_EQ(Device("sim"), kSim1);
  EXPECT_EQ(Device("sim:0"), kSim0);
  EXPECT_EQ(Device(DeviceType::sim), kSim0) << "the constructor is constant";
  EXPECT_EQ(Device("cuda").index(), 0) << "each type has a current device of its own";
  if (!is_available(DeviceType::cuda)) {
    EXPECT_EQ(current_accelerator(), kSim1);
  }
  set_device(kSim0);
  EXPECT_EQ(Device("sim"), kSim0);
}

TEST(DeviceInfo, each_thread_has_its_own_current_device) {
  const DeviceGuard guard(kSim1);
  Device seen = kSim1, after = kSim1;
  std::thread([&] {
    seen = Device("sim");
    set_device(kSim1);
    set_device(kSim0);
    after = Device("sim");
  }).join();
  EXPECT_EQ(seen, kSim0);
  EXPECT_EQ(after, kSim0);
  EXPECT_EQ(Device("sim"), kSim1);
}

TEST(DeviceInfo, a_guard_puts_the_device_back) {
  {
    const DeviceGuard outer(kSim1);
    EXPECT_EQ(Device("sim"), kSim1);
    const DeviceGuard inner(kSim0);
    EXPECT_EQ(Device("sim"), kSim0);
  }
  EXPECT_EQ(Device("sim"), kSim0);
  try {
    const DeviceGuard guard(kSim1);
    throw std::runtime_error("");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(Device("sim"), kSim0);
}

TEST(DeviceInfo, a_stream_guard_makes_the_streams_device_current) {
  {
    const StreamGuard guard(Stream{kSim1, 0});
    EXPECT_EQ(Device("sim"), kSim1);
  }
  EXPECT_EQ(Device("sim"), kSim0);
}

TEST(DeviceInfo, devices_that_are_not_there_are_refused) {
  const Device none("sim:100");
  EXPECT_GRADUS_ERROR(set_device(none), "E-DEVICE-ORDINAL",
                      "device: invalid device ordinal: sim:100, but there are ");
  EXPECT_GRADUS_ERROR(DeviceGuard{none}, "E-DEVICE-ORDINAL", "sim:100");
  EXPECT_EQ(Device("sim"), kSim0) << "nothing has changed";
  EXPECT_GRADUS_ERROR(get_device_name(none), "E-DEVICE-ORDINAL", "sim:100");
  EXPECT_GRADUS_ERROR(get_device_properties(none), "E-DEVICE-ORDINAL", "sim:100");
  EXPECT_GRADUS_ERROR(get_device_capability(none), "E-DEVICE-ORDINAL", "sim:100");
  EXPECT_GRADUS_ERROR(mem_get_info(none), "E-DEVICE-ORDINAL", "sim:100");
  if (!is_available(DeviceType::cuda)) {
    EXPECT_GRADUS_ERROR(get_device_name("cuda"), "E-DEVICE-UNAVAILABLE", "device: cuda:0 is not available: ");
  }
}

TEST(DeviceInfo, properties_agree_with_each_other) {
  for (const Device device : {Device("cpu"), kSim0, kSim1}) {
    const DeviceProperties p = get_device_properties(device);
    EXPECT_FALSE(p.name.empty());
    EXPECT_EQ(get_device_name(device), p.name);
    EXPECT_EQ(p.total_memory, mem_get_info(device).total);
    EXPECT_GE(p.multiprocessors, 1);
    EXPECT_EQ(get_device_capability(device), (std::pair{p.capability_major, p.capability_minor}));
  }
  EXPECT_EQ(get_device_name(), get_device_name(current_accelerator()));
  EXPECT_EQ(get_device_capability("cpu"), (std::pair{0, 0}));
}

TEST(DeviceInfo, free_memory_is_what_the_cache_has_not_taken) {
  empty_cache(kSim1);
  const MemoryInfo before = mem_get_info(kSim1);
  EXPECT_LE(before.free, before.total);
  const runtime::Allocation a = runtime::allocate_memory(100, Stream{kSim1});
  EXPECT_EQ(before.free - mem_get_info(kSim1).free, size_t{2} << 20) << "a segment of 2 MiB";
  runtime::free_memory(a);
  EXPECT_EQ(before.free - mem_get_info(kSim1).free, size_t{2} << 20) << "the cache keeps it";
  empty_cache(kSim1);
  EXPECT_EQ(mem_get_info(kSim1).free, before.free);
}

}  // namespace
}  // namespace gradus
