#include <gradus/base/stats.h>
#include <gradus/runtime/stream.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "support/expect_error.h"

namespace gradus {
namespace {

TEST(Stream, new_ones_differ) {
  const Stream a = Stream::create({}), b = Stream::create({});
  EXPECT_NE(a.id, 0);
  EXPECT_FALSE(a == b);
  EXPECT_TRUE(a.query());
  const Stats before = stats();
  a.synchronize();
  EXPECT_EQ((stats() - before).synchronizations, 1);
}

TEST(Stream, a_guard_makes_it_current_and_puts_the_old_one_back) {
  const Stream a = Stream::create({}), b = Stream::create({});
  EXPECT_EQ(current_stream({}), Stream{});
  {
    StreamGuard outer(a);
    EXPECT_EQ(current_stream({}), a);
    {
      StreamGuard inner(b);
      EXPECT_EQ(current_stream({}), b);
      EXPECT_EQ(current_stream(Device("cuda:1")),
                (Stream{Device("cuda:1"), 0}));  // other devices are untouched
    }
    EXPECT_EQ(current_stream({}), a);
  }
  EXPECT_EQ(current_stream({}), Stream{});
}

TEST(Stream, a_guard_holds_for_its_own_device_and_thread) {
  StreamGuard cuda(Stream{Device("cuda:1"), 5});
  StreamGuard cpu(Stream::create({}));
  EXPECT_EQ(current_stream(Device("cuda:1")).id, 5);
  EXPECT_EQ(current_stream(Device("cuda:0")).id, 0);
  Stream elsewhere{{}, -1};
  std::thread([&] { elsewhere = current_stream({}); }).join();
  EXPECT_EQ(elsewhere, Stream{});
}

TEST(Event, measures_the_time_between_two_points) {
  Event start{Device()}, end{Device()};
  EXPECT_TRUE(end.query());
  start.record();
  std::this_thread::sleep_for(std::chrono::milliseconds(3));
  end.record();
  end.wait(Stream{});
  end.synchronize();
  EXPECT_TRUE(end.query());
  EXPECT_GE(start.elapsed_time(end), 3.0);
  EXPECT_LE(end.elapsed_time(start), -3.0);
}

std::string elapsed_error(const Event& start, const Event& end) {
  try {
    start.elapsed_time(end);
  } catch (const Error& e) {
    return e.code() + ": " + e.what();
  }
  return "no error";
}

TEST(Event, elapsed_time_needs_both_records) {
  Event a{Device()}, b{Device()};
  EXPECT_EQ(
      elapsed_error(a, b),
      "E-EVENT: Event::elapsed_time: the start was never recorded\n  hint: call record() on both events");
  a.record();
  EXPECT_EQ(elapsed_error(a, b),
            "E-EVENT: Event::elapsed_time: the end was never recorded\n  hint: call record() on both events");
}

TEST(Event, refuses_another_devices_stream) {
  Event event{Device()};
  try {
    event.record(Stream{Device("cuda:1"), 0});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "E-EVENT");
    EXPECT_STREQ(
        e.what(),
        "Event::record: the event is on cpu, the stream on cuda:1\n  hint: make an event for each device");
  }
}

TEST(Event, moves) {
  Event a{Device()}, b{Device()};
  a.record();
  Event c = std::move(a);
  b = std::move(c);
  EXPECT_EQ(b.elapsed_time(b), 0.0);
}

TEST(Event, that_was_moved_from_is_an_error) {
  Event event{Device()};
  const Event other(std::move(event));
  EXPECT_GRADUS_ERROR(event.query(), "E-UNDEFINED", "Event: it was moved from");
  EXPECT_GRADUS_ERROR(event.record(), "E-UNDEFINED", "Event: it was moved from");
  EXPECT_TRUE(other.query());
}

}  // namespace
}  // namespace gradus
