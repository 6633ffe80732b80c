// Copies: CUDA runtime API, "API synchronization behavior"; programming guide, "Asynchronous Concurrent
// Execution", "Page-Locked Host Memory", "Peer-to-Peer Memory Copy".
#include <runtime/device_contract.h>

#include <numeric>

namespace gradus::contract {
namespace {

DEVICE_CONTRACT(CopyContract);

TEST_P(CopyContract, a_copy_from_pageable_memory_returns_when_it_is_done) {
  const Buffer x(device()), y(device());
  const Stream s = stream();
  std::vector<float> from(4, 3);
  Gate gate(device());
  launch_gated(s, x, gate);
  EXPECT_TRUE(waits_for(gate, [&] { copy_in(s, y, from.data()); }));
  from.assign(4, 100);  // too late
  EXPECT_TRUE(s.query());
  EXPECT_EQ(y.value(), 3);
}

TEST_P(CopyContract, a_copy_from_pinned_memory_does_not_block_the_host) {
  const Buffer x(device()), y(device());
  const Pinned from(device(), 4, 3);
  const Stream s = stream();
  Gate gate(device());
  launch_gated(s, x, gate);
  copy_in(s, y, from.data());
  EXPECT_FALSE(gate.gave_up());
  EXPECT_EQ(s.query(), rules().synchronous);
  gate.open();
  s.synchronize();
  EXPECT_EQ(y.value(), 3);
}

TEST_P(CopyContract, pinned_memory_is_read_when_the_copy_runs) {
  const Buffer x(device()), y(device());
  Pinned from(device(), 4, 3);
  const Stream s = stream();
  Gate gate(device());
  launch_gated(s, x, gate);
  copy_in(s, y, from.data());
  from.fill(4);  // the mistake that record_stream() and events are for
  gate.open();
  s.synchronize();
  EXPECT_EQ(y.value(), rules().synchronous ? 3 : 4);
}

TEST_P(CopyContract, DEV_01_a_copy_to_pageable_memory_returns_when_it_is_done) {
  const Buffer x(device(), 4, 2);
  const Stream s = stream();
  std::vector<float> to(4, -1);
  Gate gate(device());
  launch_gated(s, x, gate);
  EXPECT_TRUE(waits_for(gate, [&] { copy_out(s, to.data(), x); }));
  EXPECT_EQ(to, std::vector<float>(4, 1));
}

TEST_P(CopyContract, DEV_01_a_copy_to_pinned_memory_does_not_block_the_host) {
  const Buffer x(device(), 4, 2);
  const Pinned to(device(), 4, -1);
  const Stream s = stream();
  Gate gate(device());
  launch_gated(s, x, gate);
  copy_out(s, to.data(), x);
  EXPECT_FALSE(gate.gave_up());
  EXPECT_EQ(to.data()[0], rules().synchronous ? 1 : -1);  // read before it is there
  gate.open();
  s.synchronize();
  EXPECT_EQ(to.data()[0], 1);
  EXPECT_EQ(to.data()[3], 1);
}

TEST_P(CopyContract, memory_that_is_pinned_only_in_part_counts_as_pageable) {
  const size_t bytes = 4096;
  auto* data = static_cast<char*>(backend().allocate_pinned(bytes));
  ASSERT_TRUE(data);
  EXPECT_EQ(backend().is_pinned(data, bytes), rules().pinned);
  EXPECT_EQ(backend().is_pinned(data + 3, 5), rules().pinned);
  EXPECT_FALSE(backend().is_pinned(data, bytes + 1));
  EXPECT_FALSE(backend().is_pinned(data - 1, 2));
  backend().free_pinned(data);
  EXPECT_FALSE(backend().is_pinned(data, bytes));
}

TEST_P(CopyContract, copies_within_a_device_do_not_block_the_host) {
  const Buffer x(device()), y(device());
  const Stream s = stream();
  Gate gate(device());
  launch_gated(s, x, gate);
  copy_across(s, y, x);
  EXPECT_FALSE(gate.gave_up());
  EXPECT_EQ(s.query(), rules().synchronous);
  gate.open();
  EXPECT_EQ(y.value(), 1);
}

TEST_P(CopyContract, copies_from_host_to_host_are_synchronous) {
  const Buffer x(device());
  const Pinned from(device(), 4, 6), pinned(device());
  std::vector<float> pageable(4);
  const Stream s = stream();
  for (float* to : {pageable.data(), pinned.data()}) {
    Gate gate(device());
    launch_gated(s, x, gate);
    gate.open();
    backend().copy(to, Device(), from.data(), Device(), from.bytes(), s);
    EXPECT_EQ(to[0], 6);
    EXPECT_EQ(to[3], 6);
  }
}

TEST_P(CopyContract, a_peer_copy_is_in_order_with_its_stream_and_does_not_block_the_host) {
  const Device other = other_device();
  const Buffer here(device()), there(other, 4, 8);
  const Stream s = stream();
  Gate gate(device());
  launch_gated(s, here, gate);         // here = 1
  copy_across(s, there, here);         // there = 1
  launch_affine(s, here, here, 0, 2);  // here = 2
  EXPECT_FALSE(gate.gave_up());
  EXPECT_EQ(s.query(), rules().synchronous);
  gate.open();
  s.synchronize();
  EXPECT_EQ(there.value(), 1);
  EXPECT_EQ(here.value(), 2);
}

TEST_P(CopyContract, a_peer_copy_goes_on_a_stream_of_either_device) {
  const Device other = other_device();
  const Buffer here(device(), 4, 1), there(other, 4, 2), third(other, 4, 3);
  const Stream a = stream(), b = Stream::create(other);
  copy_across(a, here, there);
  b.wait_stream(a);
  copy_across(b, third, here);
  b.synchronize();
  EXPECT_EQ(here.value(), 2);
  EXPECT_EQ(third.value(), 2);
}

TEST_P(CopyContract, every_byte_arrives_and_no_other_is_touched) {
  constexpr int64_t n = 300'001, begin = 12'345, end = 288'888;
  const Buffer x(device(), n, -1), y(device(), n, -2);
  std::vector<float> source(n);
  std::iota(source.begin(), source.end(), 0.0f);
  const Stream s = default_stream();
  auto at = [](const Buffer& b, int64_t i) { return static_cast<float*>(b.data()) + i; };
  backend().copy(at(x, begin), device(), &source[begin], Device(), (end - begin) * sizeof(float), s);
  backend().copy(at(y, begin + 1), device(), at(x, begin), device(), (end - begin) * sizeof(float), s);
  const std::vector<float> in_x = x.values(), in_y = y.values();
  for (int64_t i = 0; i < n; ++i) {
    ASSERT_EQ(in_x[i], i >= begin && i < end ? static_cast<float>(i) : -1) << i;
    ASSERT_EQ(in_y[i], i > begin && i <= end ? static_cast<float>(i - 1) : -2) << i;
  }
}

TEST_P(CopyContract, a_copy_of_no_bytes_does_nothing) {
  const Buffer x(device(), 4, 5);
  backend().copy(x.data(), device(), nullptr, Device(), 0, default_stream());
  backend().copy(nullptr, Device(), x.data(), device(), 0, default_stream());
  EXPECT_EQ(x.value(), 5);
}

}  // namespace
}  // namespace gradus::contract
