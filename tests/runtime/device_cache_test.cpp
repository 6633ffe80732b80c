// The caching allocator's rules, on a device that the tests control.
#include <gradus/base/stats.h>
#include <gradus/runtime/device_cache.h>
#include <gtest/gtest.h>
#include <runtime/fake_backend.h>
#include <support/expect_error.h>

#include <string>
#include <vector>

namespace gradus::runtime {
namespace {

constexpr size_t kKiB = 1 << 10, kMiB = 1 << 20, kGiB = size_t{1} << 30;
const Device kDevice{DeviceType::sim};

class DeviceCacheTest : public ::testing::Test {
 protected:
  explicit DeviceCacheTest(size_t capacity = 100 * kMiB) : backend(capacity), cache(backend, kDevice) {}

  Allocation get(size_t bytes, int64_t stream = 0) { return cache.allocate(bytes, stream); }
  void put(const Allocation& a) { cache.free(a.block); }
  int64_t allocated() { return cache.stats().allocated; }
  int64_t reserved() { return cache.stats().reserved; }

  FakeBackend backend;
  DeviceCache cache;
};

// 64 GiB of address space: sizes above 4 GiB must count and print right.
class Mem : public DeviceCacheTest {
 protected:
  Mem() : DeviceCacheTest(64 * kGiB) {}
  void expect(size_t want_allocated, size_t want_reserved) {
    EXPECT_EQ(allocated(), static_cast<int64_t>(want_allocated));
    EXPECT_EQ(reserved(), static_cast<int64_t>(want_reserved));
  }
};

TEST_F(Mem, MEM_01_rounds_as_pytorch_does) {
  const Allocation a = get(4);
  expect(512, 2 * kMiB);
  const Allocation b = get(4);
  expect(1024, 2 * kMiB);
  EXPECT_EQ(static_cast<std::byte*>(b.data) - static_cast<std::byte*>(a.data), 512);
  put(a), put(b);
  expect(0, 2 * kMiB);
  cache.empty_cache();
  expect(0, 0);
}

TEST_F(Mem, one_that_caches_nothing_asks_for_what_is_wanted_and_gives_it_back) {
  DeviceCache cache(backend, kDevice, MemoryKind::device, false);
  const Allocation a = cache.allocate(5, 0), b = cache.allocate(3 * kMiB + 1, 7);
  EXPECT_EQ(cache.stats().reserved, static_cast<int64_t>(3 * kMiB + 6));
  EXPECT_EQ(cache.stats().segments, 2);
  cache.free(a.block);
  EXPECT_EQ(cache.stats().reserved, static_cast<int64_t>(3 * kMiB + 1));
  cache.free(b.block);
  EXPECT_EQ(cache.stats().reserved, 0);
  EXPECT_EQ(cache.stats().segments, 0);
}

TEST_F(Mem, MEM_01_segment_sizes_from_fresh) {
  const struct {
    size_t bytes, allocated, reserved;
  } rows[] = {{513, 1024, 2 * kMiB},
              {262144 * 4, kMiB, 2 * kMiB},
              {kMiB + 1, kMiB + 512, 20 * kMiB},
              {3 * kMiB / 2, 3 * kMiB / 2, 20 * kMiB},
              {10 * kMiB - 512, 10 * kMiB - 512, 20 * kMiB},
              {10 * kMiB, 10 * kMiB, 10 * kMiB},
              {11 * kMiB, 11 * kMiB, 12 * kMiB},
              {5 * kGiB + 1, 5 * kGiB + 512, 5 * kGiB + 2 * kMiB}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.bytes);
    cache.reset_peak_stats();
    const Allocation a = get(row.bytes);
    expect(row.allocated, row.reserved);
    put(a);
    expect(0, row.reserved);
    EXPECT_EQ(cache.stats().max_allocated, static_cast<int64_t>(row.allocated));
    EXPECT_EQ(cache.stats().max_reserved, static_cast<int64_t>(row.reserved));
    cache.reset_peak_stats();
    EXPECT_EQ(cache.stats().max_allocated, 0);
    EXPECT_EQ(cache.stats().max_reserved, static_cast<int64_t>(row.reserved));
    cache.empty_cache();
    expect(0, 0);
  }
}

// One program tries a batch that is too large, catches, and goes on with half of it.
TEST_F(DeviceCacheTest, MEM_03_memory_after_a_caught_out_of_memory) {
  struct Step {  // holds its tensors as a forward pass does, and lets go of them on the way out
    DeviceCache& cache;
    std::vector<Allocation> held = {};
    void run(size_t batch) {
      for (int layer = 0; layer < 4; ++layer) held.push_back(cache.allocate(batch * 30 * kMiB / 64, 0));
    }
    ~Step() {
      for (const Allocation& a : held) cache.free(a.block);
    }
  };
  const Allocation weights = get(3 * kMiB);
  const int64_t before = allocated();
  for (int round = 0; round < 10; ++round) {
    EXPECT_THROW(Step{cache}.run(64), Error);
    EXPECT_EQ(allocated(), before);
    EXPECT_NO_THROW(Step{cache}.run(32));
    EXPECT_EQ(allocated(), before);
    EXPECT_LE(reserved(), static_cast<int64_t>(100 * kMiB));
    EXPECT_LE(backend.held(), 100 * kMiB);
  }
  EXPECT_EQ(cache.stats().ooms, 10);
  put(weights);
}

TEST_F(DeviceCacheTest, MEM_05_empty_cache_gives_back_unused_segments_only) {
  const Allocation a = get(kMiB / 2), b = get(kMiB / 2), c = get(30 * kMiB);
  EXPECT_EQ(reserved(), static_cast<int64_t>(32 * kMiB));
  put(a), put(c);
  cache.empty_cache();
  EXPECT_EQ(reserved(), static_cast<int64_t>(2 * kMiB));
  EXPECT_EQ(allocated(), static_cast<int64_t>(kMiB / 2));
  put(b);
  cache.empty_cache();
  EXPECT_EQ(reserved(), 0);
  EXPECT_EQ(backend.held(), 0u);
  const int calls = backend.allocate_calls + backend.free_calls;
  cache.empty_cache();
  EXPECT_EQ(backend.allocate_calls + backend.free_calls, calls);
}

TEST_F(DeviceCacheTest, zero_bytes_are_no_block) {
  const Allocation a = get(0);
  EXPECT_EQ(a.data, nullptr);
  EXPECT_EQ(a.block, nullptr);
  EXPECT_EQ(backend.allocate_calls, 0);
  free_memory(a);
}

TEST_F(DeviceCacheTest, freed_memory_is_used_again_without_the_device) {
  const Allocation a = get(3000);
  put(a);
  const Allocation b = get(2900);
  EXPECT_EQ(a.data, b.data);
  EXPECT_EQ(backend.allocate_calls, 1);
  EXPECT_EQ(cache.stats().cache_misses, 1);
  EXPECT_EQ(cache.stats().cache_hits, 1);
  EXPECT_EQ(cache.stats().segments, 1);
  EXPECT_EQ(cache.stats().allocation_count, 1);
}

TEST_F(DeviceCacheTest, takes_the_best_fit) {
  // Free pieces of 4, 2 and 3 KiB, kept apart by live ones.
  const Allocation four = get(4 * kKiB), x = get(1), two = get(2 * kKiB), y = get(1), three = get(3 * kKiB),
                   z = get(1);
  put(four), put(two), put(three);
  EXPECT_EQ(get(5 * kKiB / 2).data, three.data);
  EXPECT_EQ(get(2 * kKiB).data, two.data);
  EXPECT_EQ(get(2 * kKiB).data, four.data);
  put(x), put(y), put(z);
}

TEST_F(DeviceCacheTest, merges_with_both_neighbours) {
  const Allocation a = get(kKiB), b = get(kKiB), c = get(kKiB), d = get(kKiB);
  put(a), put(c);  // apart
  put(b);          // joins them
  EXPECT_EQ(get(3 * kKiB).data, a.data);
  put(d);
  EXPECT_EQ(cache.stats().largest_free_block, static_cast<int64_t>(2 * kMiB - 3 * kKiB));
}

TEST_F(DeviceCacheTest, large_rests_are_split_off_only_above_1_mib) {
  const Allocation a = get(9 * kMiB), b = get(10 * kMiB - 512);  // rest: 11 MiB, then 1 MiB + 512
  EXPECT_EQ(backend.allocate_calls, 1);
  EXPECT_EQ(cache.stats().largest_free_block, static_cast<int64_t>(kMiB + 512));
  put(b);
  const Allocation c = get(10 * kMiB);  // the rest of 1 MiB is not split off
  EXPECT_EQ(c.data, b.data);
  EXPECT_EQ(cache.stats().largest_free_block, 0);
  put(a), put(c);
  EXPECT_EQ(cache.stats().largest_free_block, static_cast<int64_t>(20 * kMiB));
}

TEST_F(DeviceCacheTest, small_and_large_do_not_share_segments) {
  put(get(2 * kMiB));
  const Allocation small = get(512);
  EXPECT_EQ(reserved(), static_cast<int64_t>(22 * kMiB));
  put(small);
}

TEST_F(DeviceCacheTest, streams_do_not_share_blocks) {
  const Allocation a = get(512, 0);
  put(a);
  const Allocation b = get(512, 7);
  EXPECT_NE(a.data, b.data);
  EXPECT_EQ(backend.allocate_calls, 2);
  put(b);
  EXPECT_EQ(get(512, 7).data, b.data);
  EXPECT_EQ(get(512, 0).data, a.data);
}

TEST_F(DeviceCacheTest, record_stream_keeps_a_freed_block_until_the_other_stream_has_passed) {
  backend.events_pass = false;
  const Allocation a = get(512);
  cache.record_stream(a.block, {kDevice, 1});
  cache.record_stream(a.block, {kDevice, 2});
  cache.record_stream(a.block, {kDevice, 2});  // said twice, counted once
  cache.record_stream(a.block, {kDevice, 0});  // its own stream is in order anyway
  put(a);
  EXPECT_EQ(backend.recorded_on, (std::vector<Stream>{{kDevice, 1}, {kDevice, 2}}));
  EXPECT_EQ(allocated(), 0);
  EXPECT_NE(get(512).data, a.data);
  backend.pass_events(2);
  EXPECT_NE(get(512).data, a.data);
  backend.pass_events(1);
  EXPECT_EQ(get(512).data, a.data);
  EXPECT_EQ(backend.live_events.size(), 2u);  // kept for the next ones
}

TEST_F(DeviceCacheTest, record_stream_is_forgotten_with_the_block) {
  const Allocation a = get(512);
  cache.record_stream(a.block, {kDevice, 1});
  put(a);
  put(get(512));
  EXPECT_EQ(backend.recorded_on.size(), 1u);
}

TEST_F(DeviceCacheTest, record_stream_refuses_another_device) {
  const Allocation a = get(512);
  try {
    cache.record_stream(a.block, {Device("sim:1"), 1});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "E-DEVICE-MISMATCH");
    EXPECT_STREQ(e.what(), "record_stream: the memory is on sim:0, the stream on sim:1");
  }
  put(a);
}

TEST_F(DeviceCacheTest, empty_cache_waits_for_pending_events) {
  backend.events_pass = false;
  const Allocation a = get(512);
  cache.record_stream(a.block, {kDevice, 1});
  put(a);
  cache.empty_cache();
  EXPECT_EQ(backend.synchronized_events, 1);
  EXPECT_EQ(reserved(), 0);
}

TEST_F(DeviceCacheTest, a_lost_device_keeps_the_block_out_of_use) {
  const Allocation a = get(512);
  cache.record_stream(a.block, {kDevice, 1});
  backend.record_fails = true;
  put(a);  // must not throw: destructors call it
  EXPECT_NE(get(512).data, a.data);
}

TEST_F(DeviceCacheTest, a_full_device_is_tried_again_after_emptying_the_cache) {
  put(get(60 * kMiB));
  const Allocation a = get(70 * kMiB);
  EXPECT_EQ(cache.stats().retries, 1);
  EXPECT_EQ(cache.stats().ooms, 0);
  EXPECT_EQ(reserved(), static_cast<int64_t>(70 * kMiB));
  EXPECT_EQ(cache.stats().max_reserved, static_cast<int64_t>(70 * kMiB));
  put(a);
}

TEST_F(DeviceCacheTest, a_full_device_waits_for_blocks_of_other_streams) {
  backend.events_pass = false;
  const Allocation a = get(60 * kMiB), live = get(30 * kMiB);
  cache.record_stream(a.block, {kDevice, 1});
  put(a);
  EXPECT_EQ(get(55 * kMiB).data, a.data);
  EXPECT_EQ(backend.allocate_calls, 3);  // the third was refused
  put(live);
}

std::string message_of(DeviceCache& cache, size_t bytes) {
  try {
    cache.allocate(bytes, 0);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "E-OUT-OF-MEMORY");
    return e.what();
  }
  return "no error";
}

TEST_F(DeviceCacheTest, out_of_memory_says_what_was_tried_and_what_there_is) {
  const Allocation a = get(60 * kMiB), b = get(3 * kMiB / 2);
  EXPECT_EQ(message_of(cache, 50 * kMiB + 1),
            "allocate: sim:0 out of memory. Tried to allocate 50.00 MiB; the device has a total capacity of "
            "100.00 MiB of which 20.00 MiB is free. 61.50 MiB is allocated by live tensors, 18.50 MiB is "
            "reserved but unallocated; the largest free block is 18.50 MiB.\n"
            "  hint: use a smaller batch, checkpoint(), or a smaller dtype, or free tensors that are done");
  EXPECT_EQ(cache.stats().ooms, 1);
  put(a), put(b);
  put(get(50 * kMiB));  // the cache is in order
}

TEST_F(DeviceCacheTest, out_of_memory_names_the_remedy_that_fits) {
  auto hint_of = [&](size_t bytes) {
    const std::string text = message_of(cache, bytes);
    return text.substr(text.find("hint: ") + 6);
  };
  EXPECT_EQ(hint_of(101 * kMiB),
            "this request alone is larger than the device: make the tensor smaller or split it");
  EXPECT_EQ(hint_of(~size_t{0}),
            "this request alone is larger than the device: make the tensor smaller or split it");
  backend.other_programs = 70 * kMiB;
  EXPECT_EQ(hint_of(50 * kMiB), "other programs hold much of the device: end them or choose another device");
  backend.other_programs = 0;
  // Five segments of 20 MiB, each with a live block: 10.5 MiB free in each, no 30 MiB in one piece.
  Allocation live[5], more[5];
  for (int i = 0; i < 5; ++i) live[i] = get(19 * kMiB / 2), more[i] = get(19 * kMiB / 2);
  for (auto& a : more) put(a);
  EXPECT_EQ(hint_of(30 * kMiB),
            "the free memory is in pieces: make the largest tensors first, and free those beside the gaps");
  for (auto& a : live) put(a);
}

TEST_F(DeviceCacheTest, raw_calls_are_counted) {
  const Stats before = gradus::stats();
  put(get(512));
  put(get(512));
  cache.empty_cache();
  const Stats used = gradus::stats() - before;
  EXPECT_EQ(used.driver_allocations, 1);
  EXPECT_EQ(used.driver_frees, 1);
}

TEST_F(DeviceCacheTest, pinned_memory_waits_for_every_recorded_stream) {
  DeviceCache pinned(backend, kDevice, MemoryKind::pinned);
  backend.events_pass = false;
  const Allocation a = pinned.allocate(512, 0);
  pinned.record_stream(a.block, {kDevice, 0});  // the host is no stream: the default stream counts too
  pinned.free(a.block);
  EXPECT_NE(pinned.allocate(512, 0).data, a.data);
  backend.pass_events(0);
  EXPECT_EQ(pinned.allocate(512, 0).data, a.data);
}

TEST_F(DeviceCacheTest, pinned_memory_serves_all_devices_of_its_type) {
  DeviceCache pinned(backend, kDevice, MemoryKind::pinned);
  const Allocation a = pinned.allocate(512, 0);
  pinned.record_stream(a.block, {kDevice, 3});
  pinned.record_stream(a.block, {Device("sim:1"), 3});  // not the same stream
  EXPECT_GRADUS_ERROR(pinned.record_stream(a.block, Stream{}), "E-DEVICE-MISMATCH",
                      "record_stream: the memory is pinned for sim:0, the stream on cpu");
  pinned.free(a.block);
  EXPECT_EQ(backend.recorded_on, (std::vector<Stream>{{kDevice, 3}, {Device("sim:1"), 3}}));
  EXPECT_EQ(backend.event_devices, (std::vector<int>{0, 1}));
  // Events are used again, each on its own device.
  const Allocation b = pinned.allocate(512, 0);
  pinned.record_stream(b.block, {Device("sim:1"), 4});
  pinned.free(b.block);
  EXPECT_EQ(backend.event_devices, (std::vector<int>{0, 1}));
  EXPECT_EQ(backend.recorded_on.back(), (Stream{Device("sim:1"), 4}));
}

TEST_F(DeviceCacheTest, a_graph_keeps_the_free_memory_of_its_stream) {
  cache.begin_capture(7);
  put(get(512, 7)), put(get(512, 0));
  cache.end_capture();
  EXPECT_EQ(reserved(), static_cast<int64_t>(4 * kMiB));
  cache.empty_cache();
  EXPECT_EQ(reserved(), static_cast<int64_t>(2 * kMiB)) << "stream 7's";
  EXPECT_EQ(message_of(cache, 100 * kMiB).substr(0, 28), "allocate: sim:0 out of memor");
  EXPECT_EQ(reserved(), static_cast<int64_t>(2 * kMiB)) << "not given back for others either";
  cache.release_capture(7);
  cache.empty_cache();
  EXPECT_EQ(reserved(), 0);
}

TEST_F(DeviceCacheTest, two_graphs_of_one_stream_keep_its_memory_until_both_are_gone) {
  for (int graph = 0; graph < 2; ++graph) {
    cache.begin_capture(7);
    put(get(512, 7));
    cache.end_capture();
  }
  cache.release_capture(7);
  cache.empty_cache();
  EXPECT_EQ(reserved(), static_cast<int64_t>(2 * kMiB));
  cache.release_capture(7);
  cache.empty_cache();
  EXPECT_EQ(reserved(), 0);
}

TEST_F(DeviceCacheTest, no_event_is_recorded_or_asked_during_a_capture) {
  backend.events_pass = false;
  const Allocation before = get(512), during = get(512);
  cache.record_stream(before.block, {kDevice, 1});
  cache.record_stream(during.block, {kDevice, 1});
  put(before);
  cache.begin_capture(7);
  const int asked = backend.queries;
  put(during);
  get(512);
  cache.empty_cache();
  EXPECT_EQ(backend.recorded_on.size(), 1u);
  EXPECT_EQ(backend.queries, asked);
  EXPECT_EQ(backend.synchronized_events, 0);
  cache.end_capture();
  EXPECT_EQ(backend.recorded_on.size(), 2u) << "what was freed during it gets its event now";
  EXPECT_GT(backend.queries, asked);
  cache.release_capture(7);
  cache.empty_cache();  // waits for the events
  EXPECT_EQ(backend.synchronized_events, 2);
}

}  // namespace
}  // namespace gradus::runtime
