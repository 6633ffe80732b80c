// Lesson 02, copies that the host does not wait for: pinned memory and non_blocking, what may be read when,
// and copies that run beside work, drawn as a timeline.
//
// Run: build/release/lessons/02_device_transfer_overlap --device sim --timeline timeline.csv
//      plots/timeline.py timeline.csv
#include <gradus/gradus.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <optional>

#include "../common/app.h"
#include "../common/timeline.h"

using namespace gradus;

// A real link is as fast as it is; the simulated one is made slow enough to watch.
constexpr double kSimulatedLink = 100e6;  // bytes a second

// [snippet pinned]
void copy(const char* name, const Tensor& source, Device device, bool non_blocking) {
  const auto start = std::chrono::steady_clock::now();
  const Tensor y = source.to(device, non_blocking);
  const std::chrono::duration<double, std::milli> returned_after = std::chrono::steady_clock::now() - start;
  const bool running = !current_stream(device).query();  // is something on the stream not done yet?
  synchronize(device);
  std::printf("%-22s returned after %.3f ms, copy still running: %s\n", name, returned_after.count(),
              running ? "yes" : "no");
  const std::string claim =
      str("C08_", source.is_pinned() ? "pinned" : "pageable", non_blocking ? "_non_blocking" : "");
  lesson::result(claim + "_ms", returned_after.count());
  lesson::result(claim + "_still_running", running);
}

void pinned_memory(Device device) {
  lesson::section(1, "Which copies the host waits for");
  const int64_t elements = device.is_sim() ? 1 << 20 : 1 << 26;
  const Tensor pageable = ones({elements}), pinned = pageable.pin_memory(device);
  std::printf("is_pinned: %s, of its pin_memory(): %s\n", pageable.is_pinned() ? "yes" : "no",
              pinned.is_pinned() ? "yes" : "no");
  pinned.to(device);  // so that no copy below pays for the device's memory
  copy("pageable", pageable, device, false);
  copy("pageable, non_blocking", pageable, device, true);
  copy("pinned", pinned, device, false);
  copy("pinned, non_blocking", pinned, device, true);
}
// [/snippet pinned]

// [snippet too_early]
int64_t sum_of(const Tensor& t) { return t.sum().item<int64_t>(); }

void too_early(Device device) {
  lesson::section(2, "Reading before the copy is done");
  const Tensor x = arange(1000000).to(device);
  std::printf("x.cpu():               sum %ld\n", sum_of(x.cpu()));
  Tensor y = zeros_like(x.cpu()).pin_memory(device);
  y.copy_(x, true);
  Event copied(device);
  copied.record();
  const int64_t early = sum_of(y);  // undefined: old values, new ones, or some of each
  std::printf("y.copy_(x, true), y is pinned, and read\n");
  std::printf("at once:               sum %ld (%s)\n", early, copied.query() ? "copied" : "not copied yet");
  copied.synchronize();
  std::printf("after synchronize():   sum %ld\n", sum_of(y));
  lesson::result("DEV01_read_too_early", static_cast<double>(early));
  lesson::result("DEV01_read_after_synchronize", static_cast<double>(sum_of(y)));
}
// [/snippet too_early]

// [snippet overlap]
struct Timed {
  Event start, end;
};

Timed timed(const Stream& stream, const std::function<void()>& work) {
  StreamGuard guard(stream);
  Timed t{Event(stream.device), Event(stream.device)};
  t.start.record();
  work();
  t.end.record();
  return t;
}

// Copies each batch on one stream and uses it on another, which may be the same.
std::vector<lesson::Span> run(const std::vector<Tensor>& batches, const Tensor& weight, const Stream& copying,
                              const Stream& computing) {
  const Device device = weight.device();
  synchronize(device);
  Event begin(device);
  begin.record(copying);
  std::vector<Timed> copies, products;
  for (const Tensor& batch : batches) {
    Tensor x;
    copies.push_back(timed(copying, [&] { x = batch.to(device, true); }));
    copies.back().end.wait(computing);  // or the product would begin before the batch is there
    x.record_stream(computing);         // or x's memory, which is copying's, could be reused too early
    products.push_back(timed(computing, [&] { matmul(x, weight); }));
  }
  synchronize(device);
  std::vector<lesson::Span> spans;
  for (size_t i = 0; i < batches.size(); ++i)
    for (const auto& [row, t] : {std::pair("copy", &copies[i]), std::pair("compute", &products[i])})
      spans.push_back({row, static_cast<int>(i), begin.elapsed_time(t->start), begin.elapsed_time(t->end)});
  return spans;
}

void overlap(Device device, const std::string& file) {
  lesson::section(3, "Copies beside work");
  const int64_t rows = device.is_sim() ? 512 : 16384;
  std::vector<Tensor> batches;
  for (int i = 0; i < 6; ++i) batches.push_back(randn({rows, 1024}).pin_memory(device));
  const Tensor weight = randn({1024, 1024}, {.device = device});
  const Stream copying = Stream::create(device), computing = Stream::create(device);
  run(batches, weight, copying, computing);  // warm up
  lesson::Timeline timeline(device);
  for (const bool two : {false, true}) {
    const auto spans = run(batches, weight, copying, two ? computing : copying);
    const int beside = lesson::overlapping(spans, "copy", "compute");
    std::printf("%s: %.1f ms, copies that ran beside a product: %d of %zu\n",
                two ? "two streams" : "one stream ", lesson::duration(spans), beside, batches.size());
    lesson::result(two ? "overlap_two_streams_ms" : "overlap_one_stream_ms", lesson::duration(spans));
    lesson::result(two ? "overlap_two_streams_copies_beside" : "overlap_one_stream_copies_beside", beside);
    timeline.add(two ? "two streams" : "one stream", spans);
  }
  timeline.print();
  timeline.write(file);
}
// [/snippet overlap]

int main(int argc, char** argv) {
  lesson::Flags flags{.unused = "--epochs, --batch-size, --data and --quick"};
  std::string file;
  bool skipped = false;
  const auto body = [&] {
    const Device device = lesson::accelerator(flags);
    skipped = device.is_cpu();
    if (skipped)
      return (void)std::printf("skipped: the cpu copies nothing to itself and has no pinned memory\n");
    std::optional<sim::OptionsGuard> slow_link;
    if (device.is_sim()) slow_link.emplace([](auto& o) { o.link = kSimulatedLink; });
    pinned_memory(device);
    too_early(device);
    overlap(device, file);
  };
  const int status = lesson::run(
      argc, argv, "Lesson 02, copies that the host does not wait for", flags, body, [&](CLI::App& app) {
        app.add_option("--timeline", file, "write when each copy and product ran to this CSV file")
            ->check(lesson::directory_exists);
      });
  return skipped ? lesson::kSkipped : status;
}
