// GRADUS_SIM_LINK: a copy between host and device takes as long as its bytes need on the link, and all
// arrive.
#include <gradus/ops/compare.h>
#include <gradus/ops/random.h>
#include <gradus/runtime/sim.h>
#include <gtest/gtest.h>
#include <support/held.h>

#include <chrono>

namespace gradus {
namespace {

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(SimLink, a_copy_takes_as_long_as_its_bytes_need) {
  const Device sim("sim:0");
  const Tensor x = randint(256, {1000003}, {.dtype = kUInt8}), pinned = x.pin_memory(sim);
  const sim::OptionsGuard slow([](auto& o) { o.link = 20e6; });  // 50 ms
  Tensor y;
  EXPECT_GE(seconds_of([&] { y = x.to(sim); }), 0.05);
  EXPECT_GE(seconds_of([&] { y.copy_(pinned, true), synchronize(sim); }), 0.05);
  Tensor back;
  EXPECT_GE(seconds_of([&] { back = y.cpu(); }), 0.05);
  EXPECT_TRUE(equal(back, x));
}

TEST(SimLink, the_fewest_bytes_arrive) {
  const sim::OptionsGuard slow([](auto& o) { o.link = 1e6; });
  for (int64_t n : {1, 5, 15, 16, 17}) {
    const Tensor x = randint(256, {n}, {.dtype = kUInt8});
    EXPECT_TRUE(equal(x.to("sim:0").cpu(), x)) << n;
  }
}

TEST(SimLink, copies_within_a_device_do_not_use_it) {
  const Tensor x = randint(256, {1000000}, {.dtype = kUInt8, .device = "sim:0"});
  synchronize("sim:0");
  const sim::OptionsGuard slow([](auto& o) { o.link = 1e5; });  // 10 s
  EXPECT_LT(seconds_of([&] { x.clone(), synchronize("sim:0"); }), 5);
}

}  // namespace
}  // namespace gradus
