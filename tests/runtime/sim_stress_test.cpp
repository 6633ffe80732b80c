// The simulated device under jitter: tasks start late at random, so that every order that the streams and
// events allow happens. 1,000 repetitions in all; none may give another value than the order of the calls.
#include <gradus/runtime/caching_allocator.h>
#include <runtime/device_contract.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace gradus::contract {
namespace {

const Device kSim{DeviceType::sim};
constexpr auto kJitter = [](sim::Options& o) { o.jitter_us = 50, o.races = true; };

// Random work on buffers that several streams share, each use ordered by events after those before it. The
// host does the same work at once.
class SharedBuffers {
 public:
  SharedBuffers(uint64_t seed, const std::vector<Stream>& streams) : random_(seed), streams_(streams) {
    for (size_t b = 0; b < kBuffers; ++b) device_[b] = std::make_unique<Buffer>(kSim, 16, 0);
    for (size_t i = 0; i < kHost; ++i) host_[i] = std::make_unique<Pinned>(kSim, 16, static_cast<float>(i));
  }
  ~SharedBuffers() { synchronize(kSim); }

  void step() {
    const Stream& stream = streams_[below(streams_.size())];
    const size_t x = below(kBuffers), y = below(kBuffers), h = below(kHost);
    const float a = static_cast<float>(below(3)) - 1, b = static_cast<float>(below(9));
    switch (below(4)) {
      case 0:
        before(stream, uses_[x], false), before(stream, uses_[y], true);
        launch_affine(stream, *device_[x], *device_[y], a, b);
        value_[y] = a * value_[x] + b;
        return after(stream, uses_[x], false), after(stream, uses_[y], true);
      case 1:
        if (x == y) return;
        before(stream, uses_[x], false), before(stream, uses_[y], true);
        copy_across(stream, *device_[y], *device_[x]);
        value_[y] = value_[x];
        return after(stream, uses_[x], false), after(stream, uses_[y], true);
      case 2:
        before(stream, host_uses_[h], false), before(stream, uses_[y], true);
        copy_in(stream, *device_[y], host_[h]->data());
        value_[y] = host_value_[h];
        return after(stream, host_uses_[h], false), after(stream, uses_[y], true);
      case 3:
        before(stream, uses_[x], false), before(stream, host_uses_[h], true);
        copy_out(stream, host_[h]->data(), *device_[x]);
        host_value_[h] = value_[x];
        return after(stream, uses_[x], false), after(stream, host_uses_[h], true);
    }
  }

  void check() {
    synchronize(kSim);
    for (size_t b = 0; b < kBuffers; ++b) EXPECT_EQ(device_[b]->value(), value_[b]) << "buffer " << b;
    for (size_t h = 0; h < kHost; ++h)
      for (int i = 0; i < 16; ++i) EXPECT_EQ(host_[h]->data()[i], host_value_[h]) << "host buffer " << h;
  }

 private:
  static constexpr size_t kBuffers = 4, kHost = 3;
  // Who used a buffer: the last write, and the reads since.
  struct Uses {
    std::unique_ptr<Event> write;
    std::vector<std::unique_ptr<Event>> reads;
  };
  size_t below(size_t n) { return random_() % n; }

  static void before(const Stream& stream, const Uses& uses, bool write) {
    if (uses.write) uses.write->wait(stream);
    if (write)
      for (const auto& read : uses.reads) read->wait(stream);
  }
  static void after(const Stream& stream, Uses& uses, bool write) {
    auto event = std::make_unique<Event>(kSim);
    event->record(stream);
    if (write) {
      uses.reads.clear();
      uses.write = std::move(event);
    } else {
      uses.reads.push_back(std::move(event));
    }
  }

  std::mt19937_64 random_;
  const std::vector<Stream>& streams_;
  std::array<std::unique_ptr<Buffer>, kBuffers> device_;
  std::array<std::unique_ptr<Pinned>, kHost> host_;
  std::array<float, kBuffers> value_{};
  std::array<float, kHost> host_value_{0, 1, 2};
  std::array<Uses, kBuffers> uses_;
  std::array<Uses, kHost> host_uses_;
};

TEST(SimStress, streams_that_share_buffers_by_events_give_the_values_of_one_stream) {
  const sim::OptionsGuard guard(kJitter);
  const std::vector<Stream> streams{Stream{kSim}, Stream::create_blocking(kSim), Stream::create(kSim),
                                    Stream::create(kSim)};
  for (uint64_t seed = 0; seed < 600; ++seed) {
    SharedBuffers work(seed, streams);
    for (int i = 0; i < 20; ++i) work.step();
    work.check();
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

// Device memory from the caching allocator.
struct Cached {
  Cached(size_t bytes, const Stream& stream) : memory(runtime::allocate_memory(bytes, stream)) {}
  ~Cached() { runtime::free_memory(memory); }
  runtime::Allocation memory;
};

// A batch on its way: from pinned memory that is freed at once to device memory that is freed at once.
void prefetch(const Stream& copies, const Stream& compute, float value, const Buffer& sum, bool record) {
  PinnedBuffer source(sum.bytes(), kSim);
  std::fill_n(static_cast<float*>(source.data()), 4, value);
  const Cached batch(sum.bytes(), copies);
  runtime::backend(kSim).copy(batch.memory.data, kSim, source.data(), Device(), sum.bytes(), copies);
  source.record_stream(copies);
  compute.wait_stream(copies);
  launch_add(compute, batch.memory.data, sum);
  if (record) runtime::record_stream(batch.memory, compute);
}

TEST(SimStress, memory_that_is_freed_early_is_not_reused_too_early) {
  const sim::OptionsGuard guard(kJitter);
  const Stream copies = Stream::create(kSim), compute = Stream::create(kSim);
  for (int i = 0; i < 400; ++i) {
    const Buffer sum(kSim);
    for (int batch = 1; batch <= 10; ++batch)
      prefetch(copies, compute, static_cast<float>(i + batch), sum, true);
    ASSERT_EQ(sum.value(), static_cast<float>(10 * i + 55)) << "repetition " << i;
  }
}

TEST(SimStress, without_record_stream_the_reuse_is_reported) {
  const sim::OptionsGuard guard(kJitter);
  for (int i = 0; i < 20; ++i) {
    const Stream copies = Stream::create(kSim), compute = Stream::create(kSim);
    const Buffer sum(kSim);
    Gate gate(kSim);
    launch_affine(compute, sum, sum, 1, 0, &gate);
    prefetch(copies, compute, 1, sum, false);
    EXPECT_GRADUS_ERROR(prefetch(copies, compute, 2, sum, false), "E-RACE", "record_stream()");
  }
}

// What one stream writes another reads, with no event between the two. Both are kernels, which one engine
// runs: in the wrong order perhaps, but never at the same time, which would be undefined behaviour in C++.
class MissingEvent {
 public:
  ~MissingEvent() { synchronize(kSim); }
  /// True if the reader came too early.
  bool wrong(float value, bool wait) {
    launch_affine(writer_, x_, x_, 0, value);
    if (wait) reader_.wait_stream(writer_);
    launch_affine(reader_, x_, y_, 1, 0);
    synchronize(kSim);
    return !(y_.value() == value);
  }

 private:
  Stream writer_ = Stream::create(kSim), reader_ = Stream::create(kSim);
  Buffer x_{kSim}, y_{kSim};
};

// Backend's calls are safe from any thread: four hosts, each with a stream and buffers of its own on a device
// that two of them share, copy, compute and wait, with and without tasks that start late.
TEST(SimStress, several_host_threads_use_the_devices_at_once) {
  for (const double jitter_us : {0, 20}) {
    const sim::OptionsGuard guard([&](auto& o) { o.jitter_us = jitter_us; });
    std::vector<std::thread> hosts;
    std::atomic<int> wrong{0};
    for (int host = 0; host < 4; ++host)
      hosts.emplace_back([&, host] {
        const Device device(DeviceType::sim, host % 2);
        const Stream stream = Stream::create(device);
        const Buffer x(device, 1024), y(device, 1024);
        Pinned pinned(device, 1024, static_cast<float>(host));
        for (int i = 0; i < 100; ++i) {
          copy_in(stream, x, pinned.data());
          launch_affine(stream, x, y, 1, static_cast<float>(i));
          copy_out(stream, pinned.data(), y);
          Event event(device);
          event.record(stream);
          i % 2 ? event.synchronize() : stream.synchronize();
          wrong += pinned.data()[1023] != static_cast<float>(host + i);
          pinned.fill(static_cast<float>(host));
        }
      });
    for (std::thread& host : hosts) host.join();
    EXPECT_EQ(wrong, 0);
  }
}

TEST(SimStress, jitter_exposes_a_missing_event) {
  const sim::OptionsGuard guard([](auto& o) { o.jitter_us = 100, o.races = false; });
  MissingEvent pair;
  int wrong = 0;
  for (int i = 1; i <= 200; ++i) wrong += pair.wrong(static_cast<float>(i), false);
  EXPECT_GT(wrong, 0);
  for (int i = 1; i <= 200; ++i) ASSERT_FALSE(pair.wrong(static_cast<float>(-i), true));
}

TEST(SimStress, the_race_detector_reports_a_missing_event_every_time) {
  for (const double jitter_us : {0, 100}) {
    const sim::OptionsGuard guard([&](auto& o) { o.jitter_us = jitter_us, o.races = true; });
    for (int i = 1; i <= 50; ++i) {
      MissingEvent pair;
      EXPECT_GRADUS_ERROR(pair.wrong(static_cast<float>(i), false), "E-RACE", "affine: race with affine: ");
      EXPECT_FALSE(pair.wrong(static_cast<float>(-i), true));
    }
  }
}

}  // namespace
}  // namespace gradus::contract
