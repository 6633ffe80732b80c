// Lesson 02: tensors on a device.
//
// You will learn how a tensor gets to a device and back, when that costs a copy and when it does not, how its
// numbers reach NumPy, and the errors that everybody meets first. measure.cpp goes on with time, overlap.cpp
// with copies that the host does not wait for.
//
// Run: ./gradus learn 02          or: build/release/lessons/02_device_transfer --device sim
#include <gradus/gradus.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "../common/app.h"

using namespace gradus;

const char* yes_no(bool b) { return b ? "yes" : "no"; }

// [snippet moving]
void describe(const char* name, const Tensor& t) {
  std::printf("%-22s device %-7s is_cuda %-4s get_device %d\n", name, to_string(t.device()).c_str(),
              yes_no(t.is_cuda()), t.get_device());
}

void moving(Device device) {
  lesson::section(1, "To the device and back");
  const Tensor x = tensor({1.0, 2.0, 3.0});
  const Tensor y = x.to(device);
  describe("y = x.to(device)", y);
  describe("x, after that", x);
  describe("y.cpu()", y.cpu());
  describe("zeros({3}, on device)", zeros({3}, {.device = device}));
  std::printf("y is x itself: %s\n", yes_no(y.is_same(x)));
  std::printf("y.to(device) is y itself: %s\n", yes_no(y.to(device).is_same(y)));
  std::printf("y.cpu() has x's values: %s\n", yes_no(equal(y.cpu(), x)));
  try {
    describe("x.cuda()", x.cuda());  // a GPU or nothing; .to(device) runs everywhere
  } catch (const Error& error) {
    std::printf("x.cuda(): %s\n", error.code().c_str());
  }
  lesson::result("C05_returned_the_old_tensor", y.is_same(x));
  lesson::result("C05_old_tensor_stayed_on_cpu", x.is_cpu());
  lesson::result("C05_same_device_same_tensor", y.to(device).is_same(y));
}
// [/snippet moving]

// [snippet copies]
int64_t count_copies(const char* what, const std::function<Tensor()>& make) {
  const Stats before = stats();
  make();
  const Stats done = stats() - before;
  std::printf("%-36s copies to the device: %ld, bytes: %ld\n", what, done.copies_h2d, done.bytes_h2d);
  return done.copies_h2d;
}

void copies(Device device) {
  lesson::section(2, "What is copied");
  const int64_t moved = count_copies("ones({1000, 1000}).to(device)", [&] {
    return ones({1000, 1000}).to(device);
  });
  const int64_t created = count_copies("ones({1000, 1000}, on device)", [&] {
    return ones({1000, 1000}, {.device = device});
  });
  count_copies("randn({1000, 1000}, on device)", [&] { return randn({1000, 1000}, {.device = device}); });
  count_copies("tensor({1.0, 2.0, 3.0}, on device)", [&] {
    return tensor({1.0, 2.0, 3.0}, {.device = device});
  });
  lesson::result("C06_copies_moved", static_cast<double>(moved));
  lesson::result("C06_copies_created", static_cast<double>(created));
}
// [/snippet copies]

// [snippet numpy]
void numpy(Device device) {
  lesson::section(3, "To NumPy");
  const auto path =
      (std::filesystem::temp_directory_path() / str("gradus_lesson02_", ::getpid(), ".npy")).string();
  const Tensor w = full({3}, 0.5, {.device = device, .requires_grad = true});
  lesson::print_error([&] { save_npy(path, w); });
  if (!device.is_cpu()) lesson::print_error([&] { save_npy(path, w.detach()); });
  save_npy(path, w.detach().cpu());
  const Tensor back = load_npy(path);
  std::printf("w.detach().cpu() was saved: %ju bytes; loaded: device %s, equal: %s\n",
              std::filesystem::file_size(path), to_string(back.device()).c_str(),
              yes_no(equal(back, w.detach().cpu())));
  std::filesystem::remove(path);
}
// [/snippet numpy]

// [snippet mixed]
void mixed(Device device) {
  lesson::section(4, "Two devices in one operation");
  if (device.is_cpu()) return (void)std::printf("skipped: the cpu alone is one device\n");
  const Tensor a = randn({3}).to(device), b = randn({3});
  const auto layer = [&] { linear(randn({1, 3}), zeros({2, 3}, {.device = device}), zeros({2})); };
  for (const std::function<void()>& meet : {std::function([&] { add(a, b); }), {layer}})
    lesson::result("C04_is_a_mismatch", lesson::print_error(meet) == "E-DEVICE-MISMATCH");
  const Tensor c = a + b.to(device);
  std::printf("a + b.to(device): on %s\n", to_string(c.device()).c_str());
}
// [/snippet mixed]

int main(int argc, char** argv) {
  lesson::Flags flags{.unused = "--epochs, --batch-size, --data and --quick"};
  return lesson::run(argc, argv, "Lesson 02: tensors on a device", flags, [&] {
    const Device device = lesson::accelerator(flags);
    moving(device);
    copies(device);
    numpy(device);
    mixed(device);
  });
}
