// Random schedules of tasks, events, waits and frees against a slow detector that forgets nothing: it keeps
// every use of every byte, and of every stream the set of tasks that come before its next one.
#include <gradus/backends/sim/race_detector.h>
#include <gtest/gtest.h>
#include <support/expect_error.h>

#include <random>
#include <set>
#include <string>
#include <vector>

namespace gradus::sim {
namespace {

constexpr uintptr_t kBase = 0x4000;
constexpr int kBytes = 96, kStreams = 4;

// Calls f with each byte of an operand, by its definition.
template <class F>
void for_each_byte(const TensorArg& x, const F& f) {
  const auto size = static_cast<int64_t>(element_size(x.dtype));
  for (int64_t i = 0; i < x.numel(); ++i) {
    int64_t offset = reinterpret_cast<uintptr_t>(x.address) - kBase;
    for (int64_t d = x.dim() - 1, rest = i; d >= 0; rest /= x.sizes[d], --d)
      offset += rest % x.sizes[d] * x.strides[d] * size;
    for (int64_t b = 0; b < size; ++b) f(offset + b);
  }
}

using Tasks = std::set<int>;  // tasks known to be done

class Reference {
 public:
  bool races(int stream, const std::vector<Use>& uses) const {
    bool race = false;
    for (const Use& use : uses)
      for_each_byte(*use.tensor, [&](int64_t byte) {
        for (const Past& past : bytes_[byte])
          if ((past.wrote || use.access != Access::read) && !before(stream).count(past.task)) race = true;
      });
    return race;
  }
  void task(int stream, const std::vector<Use>& uses) {
    known_[stream] = before(stream);
    for (const Use& use : uses)
      for_each_byte(*use.tensor, [&](int64_t byte) {
        bytes_[byte].push_back({tasks_, use.access != Access::read});
      });
    known_[stream].insert(tasks_++);
  }
  Tasks event(int stream) const { return before(stream); }
  void join(int stream, const Tasks& event) { known_[stream].insert(event.begin(), event.end()); }
  void join_host(const Tasks& event) { host_.insert(event.begin(), event.end()); }
  void forget(int64_t begin, int64_t count) {
    for (int64_t b = begin; b < begin + count; ++b) bytes_[b].clear();
  }

 private:
  struct Past {
    int task;
    bool wrote;
  };
  Tasks before(int stream) const {
    Tasks tasks = known_[stream];
    tasks.insert(host_.begin(), host_.end());
    return tasks;
  }
  std::vector<Past> bytes_[kBytes];
  Tasks known_[kStreams], host_;
  int tasks_ = 0;
};

// A schedule: one step at a time to both detectors.
class Schedule {
 public:
  explicit Schedule(uint64_t seed) : random_(seed), waits_(below(4)) {}

  // Steps of each kind are as likely as the schedule's own mix has it, so that some race soon and some never.
  void step() {
    switch (below(6 + waits_)) {
      default:
        return task();
      case 4:
        return event();
      case 5:
        return below(3) ? join() : below(4) ? host() : forget();
      case 6:
      case 7:
      case 8:
        return wait_stream();
    }
  }
  int races = 0, tasks = 0;

 private:
  int below(int n) { return static_cast<int>(random_() % n); }

  TensorArg operand() {
    constexpr DType dtypes[] = {kUInt8, kUInt8, kFloat16, kFloat32};
    for (;;) {
      TensorArg x{reinterpret_cast<void*>(kBase + below(kBytes)), 1, {}, {}, dtypes[below(4)]};
      const auto size = static_cast<int64_t>(element_size(x.dtype));
      int64_t end = static_cast<int64_t>(reinterpret_cast<uintptr_t>(x.address) - kBase) + size;
      for (int d = below(4); d > 0; --d) {
        x.sizes.push_back(below(8) ? 1 + below(5) : 0);
        x.strides.push_back(below(below(2) ? 4 : 20));
        end += std::max<int64_t>(0, x.sizes.back() - 1) * x.strides.back() * size;
      }
      if (end <= kBytes) return x;
    }
  }

  void task() {
    std::vector<TensorArg> operands;
    for (int i = 1 + below(3); i > 0; --i) operands.push_back(operand());
    std::vector<Use> uses;
    for (const TensorArg& x : operands)
      uses.push_back({&x, below(3) ? Access::read : below(2) ? Access::write : Access::read_write});
    const int stream = below(kStreams);
    const bool race = reference_.races(stream, uses);
    const std::string error = testing::error_of([&] { detector_.task(stream, "task", uses); });
    ASSERT_EQ(!error.empty(), race) << error;
    if (!race) reference_.task(stream, uses);
    races += race;
    ++tasks;
  }
  void event() {
    const int stream = below(kStreams);
    events_.push_back({detector_.clock(stream), reference_.event(stream)});
  }
  void join() {
    if (events_.empty()) return;
    const auto& [clock, tasks] = events_[below(static_cast<int>(events_.size()))];
    const int stream = below(kStreams);
    detector_.join(stream, clock);
    reference_.join(stream, tasks);
  }
  void wait_stream() {
    const int stream = below(kStreams), other = below(kStreams);
    detector_.join(stream, detector_.clock(other));
    reference_.join(stream, reference_.event(other));
  }
  void host() {
    if (events_.empty()) return;
    const auto& [clock, tasks] = events_[below(static_cast<int>(events_.size()))];
    detector_.join_host(clock);
    reference_.join_host(tasks);
  }
  void forget() {
    const int begin = below(kBytes), count = below(kBytes - begin + 1);
    detector_.forget(reinterpret_cast<void*>(kBase + begin), count);
    reference_.forget(begin, count);
  }

  struct Event {
    Clock clock;
    Tasks tasks;
  };
  std::mt19937_64 random_;
  int waits_;
  RaceDetector detector_{8};  // tidied all the time
  Reference reference_;
  std::vector<Event> events_;
};

TEST(RaceDetectorRandom, agrees_with_a_detector_that_forgets_nothing) {
  int races = 0, tasks = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Schedule schedule(seed);
    for (int i = 0; i < 60; ++i) {
      schedule.step();
      ASSERT_FALSE(::testing::Test::HasFatalFailure()) << "seed " << seed << ", step " << i;
    }
    races += schedule.races, tasks += schedule.tasks;
  }
  EXPECT_GT(races, tasks / 10);  // the schedules have both
  EXPECT_LT(races, tasks * 9 / 10);
}

}  // namespace
}  // namespace gradus::sim
