#include <gradus/runtime/caching_allocator.h>
#include <gradus/runtime/device_stats.h>
#include <gradus/runtime/launch.h>
#include <gtest/gtest.h>

namespace gradus {
namespace {

const Device kSim0(DeviceType::sim, 0), kSim1(DeviceType::sim, 1);

struct Args {
  TensorArg x;
  static constexpr auto operands = std::tuple{in(&Args::x)};
};
constexpr auto kNothing =
    KernelTable<Args>("nothing").host(dtypes(kFloat32), [](const Args&, const Stream&) {});

TEST(DeviceStats, launches_count_on_their_stream_s_device) {
  const Stats sum = stats(), cpu = stats("cpu"), first = stats(kSim0), second = stats(kSim1);
  launch(kNothing, kFloat32, Stream{}, Args{});
  for (int i = 0; i < 2; ++i) launch(kNothing, kFloat32, Stream{kSim0}, Args{});
  for (int i = 0; i < 3; ++i) launch(kNothing, kFloat32, Stream::create(kSim1), Args{});
  EXPECT_EQ((stats("cpu") - cpu).launches, 1);
  EXPECT_EQ((stats(kSim0) - first).launches, 2);
  EXPECT_EQ((stats(kSim1) - second).launches, 3);
  EXPECT_EQ((stats() - sum).launches, 6);
  synchronize(kSim0), synchronize(kSim1);
}

TEST(DeviceStats, waits_count_on_their_device) {
  const Stats sum = stats(), first = stats(kSim0), second = stats(kSim1);
  synchronize(kSim1);
  Stream::create(kSim1).synchronize();
  Event event(kSim1);
  event.record(Stream{kSim1});
  event.synchronize();
  EXPECT_EQ((stats(kSim1) - second).synchronizations, 3);
  EXPECT_EQ((stats(kSim0) - first).synchronizations, 0);
  EXPECT_EQ((stats() - sum).synchronizations, 3);
}

TEST(DeviceStats, raw_allocations_count_on_their_device) {
  empty_cache(kSim1);
  const Stats sum = stats(), second = stats(kSim1);
  runtime::free_memory(runtime::allocate_memory(100, Stream{kSim1}));
  empty_cache(kSim1);
  EXPECT_EQ((stats(kSim1) - second).driver_allocations, 1);
  EXPECT_EQ((stats(kSim1) - second).driver_frees, 1);
  EXPECT_EQ((stats() - sum).driver_allocations, 1);
  EXPECT_EQ((stats() - sum).driver_frees, 1);
}

}  // namespace
}  // namespace gradus
