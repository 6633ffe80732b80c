// Streams: CUDA programming guide, "Streams", "Default Stream", "Implicit Synchronization", "Explicit
// Synchronization".
#include <runtime/device_contract.h>

namespace gradus::contract {
namespace {

DEVICE_CONTRACT(StreamContract);
DEVICE_CONTRACT_WHERE(TwoDeviceStreamContract, device_count(type) > 1);

TEST_P(StreamContract, a_launch_returns_before_its_kernel_is_done) {
  const Buffer y(device());
  const Stream s = stream();
  Gate gate(device());
  launch_gated(s, y, gate);
  EXPECT_EQ(s.query(), rules().synchronous);
  EXPECT_FALSE(gate.gave_up());
  gate.open();
  s.synchronize();
  EXPECT_TRUE(s.query());
  EXPECT_EQ(y.value(), 1);
}

TEST_P(StreamContract, a_query_counts_running_work) {
  const Buffer y(device());
  const Stream s = stream();
  Gate gate(device());
  launch_gated(s, y, gate);
  gate.wait_until_reached();  // nothing waits in the queue any more
  EXPECT_EQ(s.query(), rules().synchronous);
}

TEST_P(StreamContract, a_query_of_an_idle_stream_is_true) {
  EXPECT_TRUE(stream().query());
  const Buffer y(device());
  const Stream s = stream(), busy = stream();
  Gate gate(device());
  launch_gated(busy, y, gate);
  EXPECT_TRUE(s.query());
}

TEST_P(StreamContract, work_in_a_stream_runs_in_the_order_of_the_calls) {
  const Buffer x(device()), y(device());
  const Pinned five(device(), 4, 5), out(device());
  const Stream s = stream();
  Gate gate(device());
  launch_gated(s, x, gate);       // x = 1
  launch_affine(s, x, x, 2, 1);   // x = 3
  copy_across(s, y, x);           // y = 3
  copy_in(s, x, five.data());     // x = 5
  launch_affine(s, y, y, 10, 0);  // y = 30
  launch_affine(s, x, x, 3, 0);   // x = 15
  copy_out(s, out.data(), x);     // out = 15
  launch_affine(s, x, x, 0, 7);   // x = 7
  let_copies_pass();
  gate.open();
  s.synchronize();
  EXPECT_EQ(out.data()[0], 15);
  EXPECT_EQ(x.value(), 7);
  EXPECT_EQ(y.value(), 30);
}

TEST_P(StreamContract, arguments_are_taken_at_the_call) {
  const Buffer y(device());
  const Stream s = stream();
  Gate gate(device());
  launch_gated(s, y, gate);
  for (float b = 0; b < 10; ++b) launch_affine(s, y, y, 2, b);
  gate.open();
  s.synchronize();
  float expected = 1;
  for (float b = 0; b < 10; ++b) expected = 2 * expected + b;
  EXPECT_EQ(y.value(), expected);
}

TEST_P(StreamContract, synchronize_waits_for_the_stream) {
  const Buffer y(device());
  const Stream s = stream();
  Gate gate(device());
  launch_gated(s, y, gate);
  EXPECT_TRUE(waits_for(gate, [&] { s.synchronize(); }));
  EXPECT_TRUE(s.query());
}

TEST_P(StreamContract, memory_that_is_freed_serves_the_work_that_was_queued) {
  auto x = std::make_unique<Buffer>(device());
  const Buffer y(device());
  const Stream s = stream();
  Gate gate(device());
  launch_gated(s, *x, gate);
  launch_affine(s, *x, y, 2, 0);
  EXPECT_TRUE(waits_for(gate, [&] { x.reset(); }));  // as cudaFree() waits for the device
  s.synchronize();
  EXPECT_EQ(y.value(), 2);
}

TEST_P(StreamContract, synchronize_waits_for_no_other_stream) {
  const Buffer y(device());
  const Stream busy = stream(), s = stream();
  Gate gate(device());
  launch_gated(busy, y, gate);
  s.synchronize();
  EXPECT_FALSE(gate.gave_up());
  EXPECT_EQ(busy.query(), rules().synchronous);
}

TEST_P(StreamContract, synchronizing_the_device_waits_for_all_its_streams) {
  const Buffer y(device());
  const Stream s = stream();
  Gate gate(device());
  launch_gated(s, y, gate);
  EXPECT_TRUE(waits_for(gate, [&] { synchronize(device()); }));
}

TEST_P(TwoDeviceStreamContract, synchronizing_a_device_waits_for_no_other_device) {
  const Buffer y(device());
  Gate gate(device());
  launch_gated(stream(), y, gate);
  synchronize(other_device());
  EXPECT_FALSE(gate.gave_up());
}

TEST_P(StreamContract, non_blocking_streams_are_not_ordered) {
  const Buffer x(device()), y(device());
  const Pinned from(device());
  const Stream a = stream(), b = stream();
  Gate gate(device());
  launch_gated(a, x, gate);
  copy_in(b, y, from.data());
  b.synchronize();
  EXPECT_FALSE(gate.gave_up());
  EXPECT_EQ(a.query(), rules().synchronous);
}

// Of the two, the first is held back. Is the second's copy held back too?
enum class Kind { standard, blocking, non_blocking };
class Pair {
 public:
  Pair(Device device, Kind first, Kind second)
      : device_(device), x_(device), y_(device), from_(device), first_(make(first)), second_(make(second)) {}
  const Stream& first() const { return first_; }
  const Stream& second() const { return second_; }
  void queue(Gate& gate) const {
    launch_gated(first_, x_, gate);
    copy_in(second_, y_, from_.data());
  }

 private:
  Stream make(Kind kind) const {
    if (kind == Kind::standard) return {device_};
    return kind == Kind::blocking ? Stream::create_blocking(device_) : Stream::create(device_);
  }
  Device device_;
  Buffer x_, y_;
  Pinned from_;
  Stream first_, second_;
};

TEST_P(StreamContract, the_legacy_default_stream_waits_for_blocking_streams) {
  const Pair pair(device(), Kind::blocking, Kind::standard);
  Gate gate(device());
  pair.queue(gate);
  let_copies_pass();
  EXPECT_EQ(pair.second().query(), rules().synchronous);
  EXPECT_TRUE(waits_for(gate, [&] { pair.second().synchronize(); }));
}

TEST_P(StreamContract, blocking_streams_wait_for_the_legacy_default_stream) {
  const Pair pair(device(), Kind::standard, Kind::blocking);
  Gate gate(device());
  pair.queue(gate);
  let_copies_pass();
  EXPECT_EQ(pair.second().query(), rules().synchronous);
  EXPECT_TRUE(waits_for(gate, [&] { pair.second().synchronize(); }));
}

TEST_P(StreamContract, non_blocking_streams_are_exempt_from_the_legacy_rule) {
  for (const auto& [first, second] :
       {std::pair(Kind::standard, Kind::non_blocking), std::pair(Kind::non_blocking, Kind::standard),
        std::pair(Kind::non_blocking, Kind::blocking), std::pair(Kind::blocking, Kind::non_blocking)}) {
    const Pair pair(device(), first, second);
    Gate gate(device());
    pair.queue(gate);
    pair.second().synchronize();
    EXPECT_FALSE(gate.gave_up());
    EXPECT_EQ(pair.first().query(), rules().synchronous);
  }
}

TEST_P(StreamContract, blocking_streams_do_not_wait_for_each_other) {
  const Pair pair(device(), Kind::blocking, Kind::blocking);
  Gate gate(device());
  pair.queue(gate);
  pair.second().synchronize();
  EXPECT_FALSE(gate.gave_up());
}

TEST_P(StreamContract, work_in_the_default_stream_between_two_blocking_streams_orders_them) {
  const Pair pair(device(), Kind::blocking, Kind::blocking);
  const Buffer x(device()), y(device());
  const Pinned from(device());
  Gate gate(device());
  launch_gated(pair.first(), x, gate);
  copy_in(default_stream(), y, from.data());
  copy_in(pair.second(), x, from.data());
  let_copies_pass();
  EXPECT_EQ(pair.second().query(), rules().synchronous);
  gate.open();
  EXPECT_EQ(x.value(), 0);  // the copy came after the kernel, which wrote 1
}

TEST_P(TwoDeviceStreamContract, default_streams_of_two_devices_are_not_ordered) {
  const Buffer x(device()), y(other_device());
  const Pinned from(device());
  const Stream other{other_device()};
  Gate gate(device());
  launch_gated(default_stream(), x, gate);
  copy_in(other, y, from.data());
  other.synchronize();
  EXPECT_FALSE(gate.gave_up());
}

TEST_P(StreamContract, wait_stream_waits_for_what_is_queued_and_not_for_more) {
  const Buffer x(device()), y(device()), z(device());
  const Pinned from(device());
  const Stream a = stream(), b = stream();
  Gate first(device()), second(device());
  launch_gated(a, x, first);
  b.wait_stream(a);
  EXPECT_FALSE(first.gave_up());  // the host did not wait
  copy_in(b, y, from.data());
  let_copies_pass();
  EXPECT_EQ(b.query(), rules().synchronous);
  launch_gated(a, z, second);
  first.open();
  b.synchronize();
  EXPECT_FALSE(second.gave_up());
}

TEST_P(StreamContract, a_stream_that_there_is_not_is_refused) {
  const Stream none{device(), 1'000'000}, negative{device(), -1};
  if (rules().synchronous) {  // the cpu keeps no list: its streams have nothing to wait for
    EXPECT_TRUE(none.query());
  } else {
    EXPECT_GRADUS_ERROR(none.query(), "E-STREAM", "has no stream 1000000");
    EXPECT_GRADUS_ERROR(negative.synchronize(), "E-STREAM", "has no stream -1");
  }
}

}  // namespace
}  // namespace gradus::contract
