// Lesson 02, measuring: why a time without synchronize() is wrong, why the first one is too, and two switches
// to know of before any number from a GPU is compared.
//
// Run: build/release/lessons/02_device_transfer_measure --device sim
#include <gradus/gradus.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "../common/app.h"

using namespace gradus;

// [snippet timing]
double milliseconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// The first call also loads libraries, makes plans for the shape, and asks the system for memory.
void warm_up(Device device) {
  const Tensor a = randn({96, 96}, {.device = device});
  const auto multiply = [&] { matmul(a, a), synchronize(device); };
  synchronize(device);
  const double first = milliseconds(multiply);
  double later = milliseconds(multiply);
  for (int i = 1; i < 20; ++i) later = std::min(later, milliseconds(multiply));
  std::printf("96 x 96, first call: %.3f ms, best of the next 20: %.3f ms\n", first, later);
  lesson::result("E7_first_call_ms", first);
  lesson::result("E7_later_call_ms", later);
}

void timing(Device device, int64_t n) {
  lesson::section(1, "How long does a matrix product take?");
  warm_up(device);
  const Tensor a = randn({n, n}, {.device = device}), b = randn({n, n}, {.device = device});
  matmul(a, b);
  synchronize(device);
  const double wrong =
      milliseconds([&] { matmul(a, b); });  // the call returned; the product is not there yet
  synchronize(device);
  const double right = milliseconds([&] { matmul(a, b), synchronize(device); });
  Event start(device), end(device);
  start.record();
  matmul(a, b);
  end.record();
  end.synchronize();  // waits for the product alone, not for all that the device still does
  const double events = start.elapsed_time(end);
  std::printf("%ld x %ld, without synchronize: %.3f ms\n", n, n, wrong);
  std::printf("%ld x %ld, with synchronize:    %.3f ms\n", n, n, right);
  std::printf("%ld x %ld, between two events:  %.3f ms\n", n, n, events);
  lesson::result("C03_unsynchronized_ms", wrong);
  lesson::result("C03_synchronized_ms", right);
  lesson::result("C03_events_ms", events);
}
// [/snippet timing]

// [snippet switches]
// What TF32 keeps of a float32: 11 of its 24 bits, rounded.
Tensor to_tf32(const Tensor& x) {
  const Tensor c = x * 8193.0;  // 2^13 + 1
  return c - (c - x);
}

void switches(Device device) {
  lesson::section(2, "Two switches");
  const Tensor a = randn({256, 256}), b = randn({256, 256}), exact = matmul(a.to(kFloat64), b.to(kFloat64));
  const auto print = [&](const char* name, const Tensor& product) {
    std::printf("%-24s largest error %.1e\n", name,
                (product.cpu().to(kFloat64) - exact).abs().max().item<double>());
  };
  for (const char* precision : {"high", "highest"}) {
    set_float32_matmul_precision(precision);
    print(precision, matmul(a.to(device), b.to(device)));
  }
  print("inputs rounded to TF32", matmul(to_tf32(a), to_tf32(b)));
  lesson::print_error([] { set_float32_matmul_precision("tf32"); });

  const Tensor images = randn({8, 3, 32, 32}).to(device), filters = randn({16, 3, 3, 3}).to(device);
  const Tensor off = conv2d(images, filters);
  backends::cudnn::benchmark = true;
  std::printf("conv2d with cudnn::benchmark off and on, close: %s\n",
              allclose(conv2d(images, filters), off, 1e-4, 1e-4) ? "yes" : "no");
  backends::cudnn::benchmark = false;
}
// [/snippet switches]

int main(int argc, char** argv) {
  lesson::Flags flags{.unused = "--epochs, --batch-size and --data"};
  return lesson::run(argc, argv, "Lesson 02, measuring: synchronize, warm up, and two switches", flags, [&] {
    const Device device = lesson::accelerator(flags);
    timing(device, flags.quick ? 1024 : 2048);
    switches(device);
  });
}
