// A stream that is held back until the test lets it go, so that "before" and "after" are facts, not times.
#pragma once
#include <gradus/runtime/launch.h>
#include <gradus/runtime/sim.h>
#include <gradus/tensor/views.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace gradus::testing {

/// Nothing that is queued on `stream` from now on runs before let_go(); nor does any kernel of another sim
/// stream, since all share one compute engine. For devices that queue.
class Held {
 public:
  explicit Held(const Stream& stream) : stream_(stream) {
    launch(kTable, kFloat32, stream, Args{empty({0}, kFloat32, stream.device).arg(), this});
  }
  ~Held() {
    let_go();
    try {
      stream_.synchronize();
    } catch (const Error&) {  // the test's own, and reported there
    }
    EXPECT_FALSE(gave_up_) << "something waited for a stream that was held back";
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  void let_go() { open_ = true; }

 private:
  struct Args {
    TensorArg nothing;
    Held* held;
    static constexpr auto operands = std::tuple{in(&Args::nothing)};
  };
  static void run(const Args& args, const Stream&) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!args.held->open_ && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    if (!args.held->open_) args.held->gave_up_ = true;
  }
  static constexpr auto kTable = KernelTable<Args>("held").host(dtypes(kFloat32), &run);

  Stream stream_;
  std::atomic<bool> open_{false}, gave_up_{false};
};

}  // namespace gradus::testing
