// Random requests against the allocator: live blocks never overlap, and the figures add up.
#include <gradus/runtime/caching_allocator.h>
#include <gradus/runtime/device_cache.h>
#include <gtest/gtest.h>
#include <runtime/fake_backend.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <vector>

namespace gradus::runtime {
namespace {

constexpr size_t kMiB = 1 << 20;
const Device kDevice{DeviceType::sim};

// Mostly small, some large, all scales.
size_t random_size(std::mt19937_64& random) { return 1 + random() % (size_t{64} << (random() % 20)); }

struct Live {
  Allocation allocation;
  size_t bytes;
};

// Live blocks by address; refuses overlaps.
class Map {
 public:
  bool add(const Live& live) {
    auto* data = static_cast<std::byte*>(live.allocation.data);
    const auto next = ends_.lower_bound(data);
    if (next != ends_.end() && data + live.bytes > next->first) return false;
    if (next != ends_.begin() && std::prev(next)->second > data) return false;
    ends_[data] = data + live.bytes;
    return true;
  }
  void remove(const Live& live) { ends_.erase(static_cast<std::byte*>(live.allocation.data)); }

 private:
  std::map<std::byte*, std::byte*> ends_;
};

TEST(AllocatorStress, a_million_random_operations_without_overlap) {
  FakeBackend backend(size_t{2} << 30);
  DeviceCache cache(backend, kDevice);
  std::mt19937_64 random(7);
  std::vector<Live> live;
  Map map;
  int64_t allocated = 0, peak = 0, refused = 0;
  auto free_one = [&] {
    std::swap(live[random() % live.size()], live.back());
    allocated -= static_cast<int64_t>((live.back().bytes + 511) / 512 * 512);
    map.remove(live.back());
    cache.free(live.back().allocation.block);
    live.pop_back();
  };
  for (int step = 0; step < 1'000'000; ++step) {
    if (step % 50'000 == 0) {
      cache.empty_cache();
      const MemoryStats s = cache.stats();
      ASSERT_EQ(s.allocated, allocated);
      ASSERT_EQ(s.max_allocated, peak);
      ASSERT_EQ(s.allocation_count, static_cast<int64_t>(live.size()));
      ASSERT_EQ(s.reserved, static_cast<int64_t>(backend.held()));
      ASSERT_LE(s.allocated, s.reserved);
      ASSERT_LE(s.reserved, s.max_reserved);
      ASSERT_LE(s.largest_free_block, s.reserved - s.allocated);
      backend.events_pass = !backend.events_pass;
    }
    const bool grow = step / 20'000 % 2 == 0;  // fill, then drain
    if (live.empty() || random() % 100 < (grow ? 55 : 45)) {
      const size_t bytes = random_size(random);
      try {
        const Live block{cache.allocate(bytes, static_cast<int64_t>(random() % 3)), bytes};
        ASSERT_EQ(reinterpret_cast<uintptr_t>(block.allocation.data) % 512, 0u);
        ASSERT_TRUE(map.add(block)) << "at step " << step;
        live.push_back(block);
        allocated += static_cast<int64_t>((bytes + 511) / 512 * 512);
        peak = std::max(peak, allocated);
        if (random() % 8 == 0)
          cache.record_stream(block.allocation.block, {kDevice, static_cast<int64_t>(random() % 3)});
      } catch (const Error& e) {
        ASSERT_EQ(e.code(), "E-OUT-OF-MEMORY");
        ++refused;
        for (int i = 0; i < 100 && !live.empty(); ++i) free_one();
      }
    } else {
      free_one();
    }
  }
  EXPECT_EQ(cache.stats().ooms, refused);
  while (!live.empty()) free_one();
  cache.empty_cache();
  EXPECT_EQ(cache.stats().allocated, 0);
  EXPECT_EQ(cache.stats().reserved, 0);
  EXPECT_EQ(cache.stats().segments, 0);
  EXPECT_EQ(backend.held(), 0u);
}

// Real memory: each thread marks the ends of its blocks and finds the marks again.
TEST(AllocatorStress, threads_do_not_get_each_others_memory) {
  const int64_t before = memory_allocated();
  std::atomic<int> errors{0};
  auto work = [&](int seed) {
    std::mt19937_64 random(static_cast<uint64_t>(seed));
    std::vector<Live> live;
    std::vector<uint64_t> marks;
    auto mark = [](const Live& block, uint64_t value) {
      std::memcpy(block.allocation.data, &value, sizeof value);
      std::memcpy(static_cast<std::byte*>(block.allocation.data) + block.bytes - sizeof value, &value,
                  sizeof value);
    };
    auto check_and_free = [&](size_t i) {
      uint64_t first, last;
      std::memcpy(&first, live[i].allocation.data, sizeof first);
      std::memcpy(&last, static_cast<std::byte*>(live[i].allocation.data) + live[i].bytes - sizeof last,
                  sizeof last);
      if (first != marks[i] || last != marks[i]) ++errors;
      free_memory(live[i].allocation);
      live[i] = live.back(), live.pop_back();
      marks[i] = marks.back(), marks.pop_back();
    };
    for (int step = 0; step < 50'000; ++step) {
      if (live.empty() || (live.size() < 200 && random() % 2)) {
        const size_t bytes = 2 * sizeof(uint64_t) + random() % (step % 100 == 0 ? 3 * kMiB : 20'000);
        live.push_back({allocate_memory(bytes, Stream{{}, static_cast<int64_t>(random() % 2)}), bytes});
        marks.push_back(random());
        mark(live.back(), marks.back());
      } else {
        check_and_free(random() % live.size());
      }
      if (step % 10'000 == 0) empty_cache();
    }
    while (!live.empty()) check_and_free(0);
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back(work, t);
  for (auto& t : threads) t.join();
  EXPECT_EQ(errors, 0);
  EXPECT_EQ(memory_allocated(), before);
}

}  // namespace
}  // namespace gradus::runtime
