// The process-wide caches, on the cpu. The policy is tested in device_cache_test.cpp.
#include <gradus/base/stats.h>
#include <gradus/runtime/caching_allocator.h>
#include <gradus/runtime/pinned.h>
#include <gtest/gtest.h>

#include <cstring>
#include <utility>

namespace gradus {
namespace {

using runtime::allocate_memory;
using runtime::Allocation;
using runtime::free_memory;

TEST(CachingAllocator, cpu_memory_is_counted_and_aligned) {
  empty_cache();
  const MemoryStats before = memory_stats();
  const Allocation a = allocate_memory(1000, Stream{});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data) % 512, 0u);
  std::memset(a.data, 1, 1000);
  EXPECT_EQ(memory_allocated() - before.allocated, 1024);
  EXPECT_GE(memory_reserved(), memory_allocated());
  EXPECT_GE(max_memory_allocated(), memory_allocated());
  EXPECT_GE(max_memory_reserved(), memory_reserved());
  free_memory(a);
  EXPECT_EQ(memory_allocated(), before.allocated);
  reset_peak_memory_stats();
  EXPECT_EQ(max_memory_allocated(), before.allocated);
}

TEST(CachingAllocator, a_warm_request_makes_no_raw_call) {
  free_memory(allocate_memory(1 << 22, Stream{}));
  const Stats before = stats();
  for (int i = 0; i < 100; ++i) free_memory(allocate_memory(1 << 22, Stream{}));
  EXPECT_EQ((stats() - before).driver_allocations, 0);
  EXPECT_EQ((stats() - before).driver_frees, 0);
}

TEST(CachingAllocator, record_stream_on_the_cpu_returns_the_block_at_once) {
  const Stream other = Stream::create({});
  const Allocation a = allocate_memory(512, Stream{});
  runtime::record_stream(a, other);
  free_memory(a);
  const Allocation b = allocate_memory(512, Stream{});
  EXPECT_EQ(b.data, a.data);
  free_memory(b);
  runtime::record_stream(Allocation{}, other);  // nothing to keep
}

TEST(CachingAllocator, MEM_05_an_unused_device_is_left_alone) {
  const Device unused("cuda:5");
  empty_cache(unused);
  reset_peak_memory_stats(unused);
  EXPECT_EQ(memory_stats(unused).segments, 0);
  EXPECT_EQ(memory_summary(unused),
            "memory of cuda:5: allocated 0 bytes (peak 0 bytes) in 0 blocks, reserved 0 bytes (peak 0 bytes) "
            "in 0 segments, largest free block 0 bytes");
}

TEST(CachingAllocator, more_than_the_machine_has_is_refused) {
  try {
    allocate_memory(size_t{1} << 55, Stream{});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "E-OUT-OF-MEMORY");
    EXPECT_NE(std::string(e.what()).find("cpu out of memory. Tried to allocate 32768.00 TiB"),
              std::string::npos)
        << e.what();
  }
}

TEST(PinnedBuffer, is_host_memory_that_is_used_again) {
  void* data;
  {
    PinnedBuffer a(1000, Device());
    data = a.data();
    EXPECT_EQ(a.size(), 1000u);
    std::memset(a.data(), 1, 1000);
    a.record_stream(Stream{});
  }
  PinnedBuffer b(1000, Device());
  EXPECT_EQ(b.data(), data);
}

TEST(PinnedBuffer, moves) {
  PinnedBuffer a(1000, Device());
  void* data = a.data();
  PinnedBuffer b = std::move(a);
  EXPECT_EQ(b.data(), data);
  EXPECT_EQ(a.data(), nullptr);
  EXPECT_EQ(a.size(), 0u);
  PinnedBuffer c;
  EXPECT_EQ(c.data(), nullptr);
  c = std::move(b);
  EXPECT_EQ(c.data(), data);
  EXPECT_EQ(c.size(), 1000u);
}

#ifdef __SANITIZE_ADDRESS__
TEST(CachingAllocatorDeathTest, the_sanitizer_sees_use_after_free_and_overrun) {
  const Allocation a = allocate_memory(512, Stream{});
  auto* bytes = static_cast<volatile char*>(a.data);
  EXPECT_DEATH(bytes[512] = 1, "use-after-poison");
  free_memory(a);
  EXPECT_DEATH(bytes[0] = 1, "use-after-poison");
}
#endif

// Freed after main has returned, when other static objects may be gone: must not crash.
struct FreedAtExit {
  Allocation allocation;
  ~FreedAtExit() {
    free_memory(allocation);
    free_memory(allocate_memory(30 << 20, Stream{}));
  }
} freed_at_exit;

TEST(CachingAllocator, outlives_static_objects) { freed_at_exit.allocation = allocate_memory(512, Stream{}); }

}  // namespace
}  // namespace gradus
