// Events: CUDA runtime API, "Event Management"; programming guide, "Events".
#include <runtime/device_contract.h>

#include <cmath>

namespace gradus::contract {
namespace {

DEVICE_CONTRACT(EventContract);
DEVICE_CONTRACT_WHERE(TwoDeviceEventContract, device_count(type) > 1);

TEST_P(EventContract, an_unrecorded_event_is_complete) {
  const Event event(device());
  EXPECT_TRUE(event.query());
  event.synchronize();
}

TEST_P(EventContract, waiting_for_an_unrecorded_event_does_nothing) {
  const Buffer x(device()), y(device());
  const Pinned from(device());
  const Event event(device());
  const Stream busy = stream(), s = stream();
  Gate gate(device());
  launch_gated(busy, x, gate);
  event.wait(s);
  copy_in(s, y, from.data());
  s.synchronize();
  EXPECT_FALSE(gate.gave_up());
}

TEST_P(EventContract, a_query_is_false_until_the_work_before_is_done_running_work_included) {
  const Buffer y(device());
  const Stream s = stream();
  Event event(device());
  Gate gate(device());
  launch_gated(s, y, gate);
  event.record(s);
  EXPECT_EQ(event.query(), rules().synchronous);
  gate.wait_until_reached();
  EXPECT_EQ(event.query(), rules().synchronous);
  gate.open();
  event.synchronize();
  EXPECT_TRUE(event.query());
}

TEST_P(EventContract, work_queued_after_the_record_does_not_count) {
  const Buffer y(device());
  const Stream s = stream();
  Event event(device());
  Gate gate(device());
  event.record(s);
  launch_gated(s, y, gate);
  event.synchronize();
  EXPECT_TRUE(event.query());
  EXPECT_FALSE(gate.gave_up());
}

TEST_P(EventContract, synchronize_waits_for_the_work_before) {
  const Buffer y(device());
  const Stream s = stream();
  Event event(device());
  Gate gate(device());
  launch_gated(s, y, gate);
  event.record(s);
  EXPECT_TRUE(waits_for(gate, [&] { event.synchronize(); }));
}

TEST_P(EventContract, a_stream_that_waits_holds_back_what_is_queued_afterwards_and_not_the_host) {
  const Buffer x(device()), y(device()), z(device());
  const Pinned from(device());
  const Stream busy = stream(), s = stream();
  Event event(device()), before(device());
  Gate gate(device());
  launch_gated(busy, x, gate);
  event.record(busy);
  copy_in(s, y, from.data());
  before.record(s);
  event.wait(s);
  EXPECT_FALSE(gate.gave_up());
  copy_in(s, z, from.data());
  let_copies_pass();
  before.synchronize();
  EXPECT_EQ(s.query(), rules().synchronous);
  EXPECT_TRUE(waits_for(gate, [&] { s.synchronize(); }));
}

TEST_P(EventContract, what_one_stream_wrote_another_reads_after_waiting) {
  const Buffer x(device()), y(device());
  const Pinned nine(device(), 4, 9);
  const Stream a = stream(), b = stream();
  Event written(device()), read(device());
  Gate gate(device());
  launch_gated(a, x, gate);  // x = 1
  written.record(a);
  written.wait(b);
  launch_affine(b, x, y, 2, 3);  // y = 5
  read.record(b);
  read.wait(a);
  copy_in(a, x, nine.data());
  let_copies_pass();
  gate.open();
  EXPECT_EQ(y.value(), 5);
  EXPECT_EQ(x.value(), 9);
}

TEST_P(EventContract, a_recorded_again_event_stands_for_its_last_record) {
  const Buffer y(device());
  const Stream s = stream(), other = stream();
  Event event(device());
  event.record(other);
  event.synchronize();
  Gate gate(device());
  launch_gated(s, y, gate);
  event.record(s);
  EXPECT_EQ(event.query(), rules().synchronous);
  event.record(other);
  other.synchronize();
  EXPECT_TRUE(event.query());
}

TEST_P(EventContract, a_wait_queued_before_keeps_the_older_point) {
  const Buffer x(device()), y(device()), z(device());
  const Pinned from(device());
  const Stream a = stream(), b = stream();
  Event event(device());
  Gate first(device()), second(device());
  launch_gated(a, x, first);
  event.record(a);
  event.wait(b);
  copy_in(b, y, from.data());
  launch_gated(a, z, second);
  event.record(a);  // a later point
  let_copies_pass();
  EXPECT_EQ(b.query(), rules().synchronous);  // the wait is not gone
  first.open();
  b.synchronize();  // and is not for the later point
  EXPECT_FALSE(second.gave_up());
  EXPECT_EQ(event.query(), rules().synchronous);
}

TEST_P(EventContract, a_wait_is_for_the_record_and_not_for_what_the_stream_got_since) {
  const Buffer x(device()), y(device()), z(device());
  const Pinned from(device());
  const Stream a = stream(), b = stream();
  Event event(device());
  Gate first(device()), second(device());
  launch_gated(a, x, first);
  event.record(a);
  launch_gated(a, z, second);
  event.wait(b);
  copy_in(b, y, from.data());
  first.open();
  b.synchronize();
  EXPECT_FALSE(second.gave_up());
  EXPECT_EQ(a.query(), rules().synchronous);
}

TEST_P(EventContract, a_wait_outlives_its_event) {
  const Buffer x(device()), y(device());
  const Pinned from(device());
  const Stream a = stream(), b = stream();
  Gate gate(device());
  launch_gated(a, x, gate);
  {
    Event event(device());
    event.record(a);
    event.wait(b);
  }
  copy_in(b, y, from.data());
  let_copies_pass();
  EXPECT_EQ(b.query(), rules().synchronous);
  EXPECT_TRUE(waits_for(gate, [&] { b.synchronize(); }));
}

TEST_P(EventContract, a_stream_waits_for_an_event_of_another_device) {
  const Device other = other_device();
  const Buffer x(device()), y(other);
  const Pinned from(device());
  const Stream a = stream(), b = Stream::create(other);
  Event event(device());
  Gate gate(device());
  launch_gated(a, x, gate);
  event.record(a);
  event.wait(b);
  copy_in(b, y, from.data());
  EXPECT_EQ(b.query(), rules().synchronous);
  EXPECT_TRUE(waits_for(gate, [&] { b.synchronize(); }));
}

TEST_P(EventContract, elapsed_time_is_that_between_the_two_points) {
  const Buffer y(device());
  const Stream s = stream();
  Event start(device()), end(device());
  Gate gate(device());
  start.record(s);
  launch_gated(s, y, gate);
  end.record(s);
  gate.wait_until_reached();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  gate.open();
  end.synchronize();
  const double elapsed = start.elapsed_time(end);
  EXPECT_GE(elapsed, rules().synchronous ? 0 : 5);  // queueing the three took no such time
  EXPECT_LE(elapsed, 1e5);
  EXPECT_EQ(end.elapsed_time(start), -elapsed);
}

TEST_P(EventContract, an_events_time_is_when_it_was_passed_and_not_when_somebody_looks) {
  const Stream s = stream();
  Event start(device()), end(device());
  start.record(s);
  end.record(s);
  end.synchronize();
  const double elapsed = start.elapsed_time(end);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(start.elapsed_time(end), elapsed);
  Event later(device());
  later.record(s);
  later.synchronize();
  EXPECT_GE(start.elapsed_time(later), 5);
}

TEST_P(EventContract, elapsed_time_needs_two_recorded_events) {
  const Stream s = stream();
  Event recorded(device());
  const Event fresh(device());
  recorded.record(s);
  recorded.synchronize();
  EXPECT_GRADUS_ERROR(fresh.elapsed_time(recorded), "E-EVENT", "the start was never recorded");
  EXPECT_GRADUS_ERROR(recorded.elapsed_time(fresh), "E-EVENT", "the end was never recorded");
}

TEST_P(EventContract, elapsed_time_needs_two_events_that_were_passed) {
  const Buffer y(device());
  const Stream s = stream();
  Event start(device()), end(device());
  start.record(s);
  start.synchronize();
  Gate gate(device());
  launch_gated(s, y, gate);
  end.record(s);
  if (rules().synchronous) {
    EXPECT_GE(start.elapsed_time(end), 0);
  } else {
    EXPECT_GRADUS_ERROR(start.elapsed_time(end), "E-EVENT", "is not reached yet");
  }
}

TEST_P(TwoDeviceEventContract, an_event_and_the_stream_that_records_it_are_on_one_device) {
  Event event(device());
  EXPECT_GRADUS_ERROR(event.record(Stream{other_device()}), "E-EVENT", "the event is on");
}

}  // namespace
}  // namespace gradus::contract
