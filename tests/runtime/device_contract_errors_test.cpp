// Errors: CUDA runtime API, "Error Handling" ("may also return error codes from previous, asynchronous
// launches"); programming guide, "Error Checking", CUDA_LAUNCH_BLOCKING.
#include <gradus/runtime/caching_allocator.h>
#include <runtime/device_contract.h>

#include <stdexcept>

namespace gradus::contract {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

DEVICE_CONTRACT(ErrorContract);
DEVICE_CONTRACT_WHERE(LateErrorContract, !rules_of(type).synchronous);
DEVICE_CONTRACT_WHERE(TwoDeviceErrorContract, device_count(type) > 1);
DEVICE_CONTRACT_WHERE(LaunchBlockingContract, rules_of(type).launch_blocking);
DEVICE_CONTRACT_WHERE(AddressContract, type != DeviceType::cpu);  // whose memory is the host's
DEVICE_CONTRACT_WHERE(OperandContract, rules_of(type).names_operand);

TEST_P(ErrorContract, a_kernels_error_shows_at_a_later_call_that_waits) {
  const Buffer y(device());
  const Stream s = stream();
  if (rules().synchronous) {  // the kernel ran in the call, and its exception is the call's
    EXPECT_THROW(launch_failing(s, y), std::runtime_error);
    EXPECT_EQ(error_of([&] { s.synchronize(); }), "");
    return;
  }
  Gate gate(device());
  launch_gated(s, y, gate);
  EXPECT_EQ(error_of([&] { launch_failing(s, y); }), "");
  EXPECT_EQ(error_of([&] { s.query(); }), "");
  gate.open();
  const std::string error = error_of([&] { s.synchronize(); });
  EXPECT_THAT(error, StartsWith("E-DEVICE-ASSERT: failing: device-side assert triggered on " +
                                to_string(device()) + ": index 7 is out of range"));
  EXPECT_THAT(error, HasSubstr("queued earlier"));
  EXPECT_THAT(error, HasSubstr("GRADUS_LAUNCH_BLOCKING=1"));
}

TEST_P(LateErrorContract, each_call_that_waits_shows_it) {
  const Buffer y(device());
  const Stream s = stream();
  float host[4];
  Event event(device());
  const std::function<void()> calls[] = {[&] { s.synchronize(); }, [&] { synchronize(device()); },
                                         [&] { event.synchronize(); }, [&] { copy_out(s, host, y); }};
  for (const auto& call : calls) {
    Gate gate(device());
    launch_gated(s, y, gate);
    launch_failing(s, y);
    event.record(s);
    gate.open();
    EXPECT_THAT(error_of(call), StartsWith("E-DEVICE-ASSERT: failing"));
    if (!reset()) return;
  }
}

TEST_P(LateErrorContract, an_error_sticks_to_every_later_call) {
  const Buffer y(device());
  const Pinned pinned(device());
  const Stream s = stream(), other = stream();
  Event before(device()), event(device());
  before.record(s);
  launch_failing(s, y);
  const std::string error = error_of([&] { s.synchronize(); });
  ASSERT_NE(error, "");
  for (int i = 0; i < 2; ++i) {  // reporting it does not clear it
    EXPECT_EQ(error_of([&] { s.synchronize(); }), error);
    EXPECT_EQ(error_of([&] { other.synchronize(); }), error);
    EXPECT_EQ(error_of([&] { s.query(); }), error);
    EXPECT_EQ(error_of([&] { synchronize(device()); }), error);
    EXPECT_EQ(error_of([&] { launch_affine(other, y, y, 1, 1); }), error);
    EXPECT_EQ(error_of([&] { launch_failing(s, y); }), error);
    EXPECT_EQ(error_of([&] { copy_in(other, y, pinned.data()); }), error);
    EXPECT_EQ(error_of([&] { copy_out(s, pinned.data(), y); }), error);
    EXPECT_EQ(error_of([&] { event.record(s); }), error);
    EXPECT_EQ(error_of([&] { before.wait(other); }), error);
    EXPECT_EQ(error_of([&] { before.query(); }), error);
    EXPECT_EQ(error_of([&] { before.synchronize(); }), error);
    EXPECT_EQ(error_of([&] { Stream::create(device()); }), error);
    EXPECT_EQ(error_of([&] { backend().allocate(0, 512); }), error);
  }
}

TEST_P(LateErrorContract, what_is_queued_behind_an_error_does_not_run) {
  const Buffer x(device()), y(device(), 4, 5);
  const Pinned pinned(device(), 4, -1);
  const Stream s = stream();
  Gate gate(device());
  launch_gated(s, x, gate);
  launch_failing(s, x);
  launch_affine(s, y, y, 0, 6);
  copy_out(s, pinned.data(), y);
  gate.open();
  EXPECT_NE(error_of([&] { s.synchronize(); }), "");
  EXPECT_EQ(pinned.data()[0], -1);
}

TEST_P(TwoDeviceErrorContract, a_copy_to_another_device_behind_an_error_does_not_run) {
  const Buffer x(device()), y(other_device(), 4, 5);
  const Stream s = stream();
  Gate gate(device());
  launch_gated(s, x, gate);  // so that all is queued before the error happens
  launch_failing(s, x);
  copy_across(s, y, x);
  gate.open();
  EXPECT_NE(error_of([&] { s.synchronize(); }), "");
  EXPECT_EQ(y.value(), 5);
}

TEST_P(TwoDeviceErrorContract, a_device_that_waits_for_an_event_of_a_failed_one_fails_too) {
  const Buffer x(device());
  const Stream s = stream(), other = Stream::create(other_device());
  Event event(device());
  Gate gate(device());
  launch_gated(s, x, gate);
  launch_failing(s, x);
  event.record(s);
  event.wait(other);
  gate.open();
  EXPECT_NE(error_of([&] { other.synchronize(); }), "");
}

TEST_P(TwoDeviceErrorContract, other_devices_go_on) {
  const Buffer x(device()), y(other_device());
  launch_failing(stream(), x);
  EXPECT_NE(error_of([&] { synchronize(device()); }), "");
  launch_affine(Stream{other_device()}, y, y, 0, 2);
  EXPECT_EQ(y.value(), 2);
}

TEST_P(ErrorContract, freeing_on_a_failed_device_throws_nothing) {
  const Stream s = stream();
  {
    const Buffer y(device());
    Event event(device());
    const runtime::Allocation cached = runtime::allocate_memory(4096, s);
    runtime::record_stream(cached, stream());
    EXPECT_ANY_THROW({
      launch_failing(s, y);
      s.synchronize();
    });
    runtime::free_memory(cached);
  }
  reset();
}

TEST_P(ErrorContract, after_a_reset_the_device_works) {
  const Buffer y(device());
  const Stream s = stream();
  EXPECT_ANY_THROW({
    launch_failing(s, y);
    s.synchronize();
  });
  if (!reset()) GTEST_SKIP() << "this device works again in another process";
  launch_affine(s, y, y, 0, 3);
  s.synchronize();
  EXPECT_EQ(y.value(), 3);
}

TEST_P(LaunchBlockingContract, launch_blocking_shows_an_error_at_its_launch) {
  std::optional<sim::OptionsGuard> blocking;
  if (GetParam() == DeviceType::sim) blocking.emplace([](auto& o) { o.launch_blocking = true; });
  const Buffer y(device());
  const Stream s = stream();
  launch_affine(s, y, y, 0, 1);
  EXPECT_TRUE(s.query());
  std::string text;
  try {
    launch_failing(s, y);
  } catch (const std::exception& error) {
    text = error.what();
  }
  EXPECT_THAT(text, HasSubstr("index 7 is out of range"));
  EXPECT_THAT(text, Not(HasSubstr("queued earlier")));
  EXPECT_THAT(text, Not(HasSubstr("LAUNCH_BLOCKING")));
  reset();
}

TEST_P(LaunchBlockingContract, under_launch_blocking_a_launch_waits_for_its_stream) {
  std::optional<sim::OptionsGuard> blocking;
  if (GetParam() == DeviceType::sim) blocking.emplace([](auto& o) { o.launch_blocking = true; });
  const Buffer y(device());
  Gate gate(device());
  EXPECT_TRUE(waits_for(gate, [&] { launch_gated(stream(), y, gate); }));
}

TEST_P(OperandContract, an_address_that_is_not_the_devices_is_an_illegal_access_and_names_the_operand) {
  const Buffer y(device());
  const Stream s = stream();
  Gate gate(device());
  launch_gated(s, y, gate);
  const float host[4] = {};
  launch_with_host_operand(s, host, y);
  gate.open();
  EXPECT_THAT(error_of([&] { s.synchronize(); }),
              StartsWith("E-ILLEGAL-ADDRESS: affine: an illegal memory access was encountered on " +
                         to_string(device()) + ": operand 1, a float32 tensor of shape [4]"));
  reset();
  EXPECT_EQ(y.value(), 1);  // of the gated kernel: the one at fault wrote nothing
}

TEST_P(ErrorContract, out_of_memory_is_not_sticky) {
  const Buffer y(device());
  EXPECT_EQ(backend().allocate(0, size_t{1} << 50), nullptr);
  EXPECT_GRADUS_ERROR(runtime::allocate_memory(size_t{1} << 50, default_stream()), "E-OUT-OF-MEMORY",
                      "Tried to allocate 1024.00 TiB");
  launch_affine(default_stream(), y, y, 0, 1);
  EXPECT_EQ(y.value(), 1);
}

TEST_P(ErrorContract, an_invalid_ordinal_is_refused_and_is_not_sticky) {
  const Buffer y(device());
  const int count = device_count(GetParam());
  EXPECT_GRADUS_ERROR(synchronize(Device(GetParam(), count)), "E-DEVICE-ORDINAL", "invalid device ordinal");
  EXPECT_GRADUS_ERROR(Stream::create(Device(GetParam(), 127)), "E-DEVICE-ORDINAL", "invalid device ordinal");
  launch_affine(default_stream(), y, y, 0, 1);
  EXPECT_EQ(y.value(), 1);
}

TEST_P(AddressContract, a_copy_to_what_is_not_the_devices_memory_is_refused_at_once) {
  const Buffer x(device()), y(device());
  float host[8];
  EXPECT_GRADUS_ERROR(backend().copy(host, device(), host + 4, Device(), 16, default_stream()),
                      "E-ILLEGAL-ADDRESS", "the target (16 bytes) is not in memory of");
  EXPECT_GRADUS_ERROR(backend().copy(host, Device(), host + 4, device(), 16, default_stream()),
                      "E-ILLEGAL-ADDRESS", "the source (16 bytes) is not in memory of");
  launch_affine(default_stream(), y, y, 0, 1);  // nothing was queued, so nothing sticks
  EXPECT_EQ(y.value(), 1);
}

}  // namespace
}  // namespace gradus::contract
