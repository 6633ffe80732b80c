#include <common/device_timer.h>
#include <gradus/gradus.h>
#include <gradus/runtime/device_info.h>

#include <chrono>
#include <thread>

namespace timing {
namespace {

using namespace gradus;

constexpr double kRow = 0.02;                         // seconds that a row of work lasts
constexpr int kLongestRow = 2000, kLongestCold = 20;  // a cold one is preceded by a flush, which takes longer
constexpr int64_t kFlush = int64_t{512} << 20;        // bytes: several times the L2 cache of any GPU
constexpr int kTries = 20;
constexpr auto kRest = std::chrono::milliseconds(100);

double host_seconds() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

// Rows of work on a GPU.
class GpuRows {
 public:
  GpuRows(Device device, const Work& work, Caches caches)
      : device_(device), work_(work), cold_(caches == Caches::cold) {
    if (cold_) flush_ = empty({kFlush}, kUInt8, device);
    warm_up();
  }

  int length() const { return length_; }
  int64_t dropped() const { return dropped_; }
  int64_t power_capped() const { return power_capped_; }
  const std::string& reasons() const { return reasons_; }

  /// Seconds of a row that ran at full speed; 0 after kTries that did not.
  double take() {
    for (int i = 0; i < kTries; ++i) {
      const double seconds = cold_ ? cold_row() : hot_row();
      const Telemetry now = telemetry(device_);
      if (now.power_capped) power_capped_ += length_;
      const std::string slowed = now.throttle;
      if (slowed.empty()) return seconds;
      reasons_ = slowed;
      dropped_ += length_;
      std::this_thread::sleep_for(kRest);
    }
    return 0;
  }

 private:
  // Until clocks have risen, memory is there and algorithms are chosen; then a row's length from what one
  // took.
  void warm_up() {
    work_();
    synchronize(device_);
    const double start = host_seconds();
    int done = 0;
    do {
      work_();
      synchronize(device_);
      ++done;
    } while (host_seconds() - start < 5 * kRow && done < kLongestRow);
    const double one = (host_seconds() - start) / done;
    length_ = std::clamp(static_cast<int>(kRow / one), 1, cold_ ? kLongestCold : kLongestRow);
    while (static_cast<int>(begin_.size()) < (cold_ ? length_ : 1)) {
      begin_.emplace_back(device_);
      end_.emplace_back(device_);
    }
  }

  // One goes before, so that the GPU is at work and the host ahead of it as the clock starts; a single one is
  // so long that it does not matter.
  double hot_row() {
    if (length_ > 1) work_();
    begin_[0].record();
    for (int i = 0; i < length_; ++i) work_();
    end_[0].record();
    end_[0].synchronize();
    return begin_[0].elapsed_time(end_[0]) * 1e-3;
  }

  double cold_row() {
    for (int i = 0; i < length_; ++i) {
      flush_.zero_();
      begin_[static_cast<size_t>(i)].record();
      work_();
      end_[static_cast<size_t>(i)].record();
    }
    end_.back().synchronize();
    double seconds = 0;
    for (size_t i = 0; i < end_.size(); ++i) seconds += begin_[i].elapsed_time(end_[i]) * 1e-3;
    return seconds;
  }

  Device device_;
  const Work& work_;
  bool cold_;
  Tensor flush_;
  std::vector<Event> begin_, end_;
  int length_ = 1;
  int64_t dropped_ = 0, power_capped_ = 0;
  std::string reasons_;
};

double time_on_gpu(benchmark::State& state, GpuRows& rows) {
  double total = 0;
  while (state.KeepRunningBatch(rows.length())) {
    const double row = rows.take();
    if (row == 0) {
      state.SkipWithError(("skipped: the GPU was slowed down in each sample: " + rows.reasons()).c_str());
      return 0;
    }
    state.SetIterationTime(row);
    total += row;
  }
  state.counters["throttled"] = static_cast<double>(rows.dropped());
  state.counters["power_capped"] = static_cast<double>(rows.power_capped());
  return total / static_cast<double>(state.iterations());
}

// Twice before: while a second result is made, the first is still there, so that fresh memory is needed once
// more.
void warm_up_host(Device device, const Work& work) {
  for (int i = 0; i < 2; ++i) work();
  synchronize(device);
}

double time_on_host(benchmark::State& state, Device device, const Work& work) {
  warm_up_host(device, work);
  const double start = host_seconds();
  for (auto _ : state) {
    work();
    synchronize(device);
  }
  return (host_seconds() - start) / static_cast<double>(state.iterations());
}

}  // namespace

benchmark::internal::Benchmark* timed_on(Device device, benchmark::internal::Benchmark* b) {
  // A row is long enough: no need for the many that Google Benchmark would ask for.
  return device.is_cuda() ? b->UseManualTime()->Iterations(1) : b->UseRealTime();
}

double time_on(benchmark::State& state, Device device, const Work& work, Caches caches) {
  if (!device.is_cuda()) return time_on_host(state, device, work);
  GpuRows rows(device, work, caches);
  return time_on_gpu(state, rows);
}

double seconds_of(Device device, const Work& work, Caches caches) {
  if (device.is_cuda()) {
    GpuRows rows(device, work, caches);
    return rows.take() / rows.length();
  }
  warm_up_host(device, work);
  const double start = host_seconds();
  int done = 0;
  do {
    work();
    synchronize(device);
    ++done;
  } while (host_seconds() - start < kRow);
  return (host_seconds() - start) / done;
}

}  // namespace timing
