// What the race detector takes as order, as the simulated device tells it.
#include <runtime/device_contract.h>

#include <memory>

namespace gradus::contract {
namespace {

const Device kSim{DeviceType::sim};

class SimRaces : public ::testing::Test {
 protected:
  ~SimRaces() override { synchronize(kSim); }
  sim::OptionsGuard guard_{[](auto& o) { o.races = true; }};
  Stream a_ = Stream::create(kSim), b_ = Stream::create(kSim);
  Buffer x_{kSim}, y_{kSim};
};

TEST_F(SimRaces, a_launch_that_raced_does_not_run) {
  launch_affine(a_, x_, x_, 0, 1);
  EXPECT_GRADUS_ERROR(launch_affine(b_, x_, x_, 0, 2), "E-RACE",
                      "affine on sim:0 stream " + std::to_string(b_.id) + " reads operand 1 (float32 [4])");
  EXPECT_EQ(x_.value(), 1);
}

TEST_F(SimRaces, a_stream_query_that_is_true_is_order) {
  launch_affine(a_, x_, x_, 0, 1);
  while (!a_.query()) std::this_thread::yield();
  launch_affine(b_, x_, y_, 2, 0);
  EXPECT_EQ(y_.value(), 2);
}

TEST_F(SimRaces, an_event_query_that_is_true_is_order) {
  Event event(kSim);
  launch_affine(a_, x_, x_, 0, 1);
  event.record(a_);
  while (!event.query()) std::this_thread::yield();
  launch_affine(b_, x_, y_, 2, 0);
  EXPECT_EQ(y_.value(), 2);
}

TEST_F(SimRaces, memory_that_was_given_back_has_no_history) {
  auto first = std::make_unique<Buffer>(kSim);
  void* const address = first->data();
  launch_affine(a_, x_, *first, 0, 1);
  first.reset();
  const Buffer second(kSim);  // written on the default stream, which waits for no other
  ASSERT_EQ(second.data(), address);
  launch_affine(b_, x_, second, 0, 3);
  EXPECT_EQ(second.value(), 3);
}

TEST_F(SimRaces, off_it_reports_nothing) {
  const sim::OptionsGuard off([](auto& o) { o.races = false; });
  launch_affine(a_, x_, x_, 0, 1);
  launch_affine(b_, x_, y_, 2, 0);
}

}  // namespace
}  // namespace gradus::contract
