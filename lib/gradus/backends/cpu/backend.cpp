#include <gradus/backends/cpu/backend.h>
#include <gradus/base/parallel.h>
#include <gradus/runtime/busy_meter.h>
#include <gradus/runtime/stream.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>

namespace gradus::runtime {
namespace {

using Clock = std::chrono::steady_clock;

struct CpuEvent {
  Clock::time_point time;
  bool recorded = false;
};

std::string model_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return "cpu";
}

class CpuBackend : public Backend {
 public:
  int device_count() const override { return 1; }
  std::string unavailable_reason() const override { return ""; }
  DeviceProperties properties(int) const override {
    return {.name = model_name(), .total_memory = memory_info(0).total, .multiprocessors = get_num_threads()};
  }
  MemoryInfo memory_info(int) const override {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    return {page * static_cast<size_t>(sysconf(_SC_AVPHYS_PAGES)),
            page * static_cast<size_t>(sysconf(_SC_PHYS_PAGES))};
  }

  int utilization(int) override { return meter_.read(process_seconds(), get_num_threads()); }

  void* allocate(int, size_t bytes) override {
    constexpr size_t kHugePage = size_t{2} << 20;
    if (bytes > memory_info(0).total) return nullptr;  // Linux would promise it, and kill us when we use it
    void* data = std::aligned_alloc(kHugePage, (bytes + kHugePage - 1) / kHugePage * kHugePage);
    if (data) madvise(data, bytes, MADV_HUGEPAGE);  // page faults on fresh 25 MB blocks cost milliseconds
    return data;
  }
  void free(int, void* data) noexcept override { std::free(data); }
  void* allocate_pinned(size_t bytes) override { return allocate(0, bytes); }
  void free_pinned(void* data) noexcept override { std::free(data); }
  bool is_pinned(const void*, size_t) const override { return false; }

  void copy(void* to, Device, const void* from, Device, size_t bytes, const Stream&) override {
    constexpr int64_t kGrain = 1 << 18;
    parallel_for(0, static_cast<int64_t>(bytes), kGrain, [&](int64_t begin, int64_t end) {
      std::memcpy(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin, end - begin);
    });
  }

  int64_t create_stream(int, bool) override { return ++streams_; }
  bool query(const Stream&) override { return true; }
  void synchronize(const Stream&) override {}
  void synchronize_device(int) override {}

  void* create_event(int) override { return new CpuEvent; }
  void destroy_event(int, void* event) noexcept override { delete static_cast<CpuEvent*>(event); }
  void record(void* event, const Stream&) override { *static_cast<CpuEvent*>(event) = {Clock::now(), true}; }
  void wait(void*, const Stream&) override {}
  bool query_event(void*) override { return true; }
  void synchronize_event(void*) override {}
  double elapsed_ms(void* start, void* end) override {
    const auto &a = *static_cast<CpuEvent*>(start), &b = *static_cast<CpuEvent*>(end);
    GRADUS_CHECK(a.recorded && b.recorded, "E-EVENT",
                 "Event::elapsed_time: ", a.recorded ? "the end" : "the start", " was never recorded",
                 hint("call record() on both events"));
    return std::chrono::duration<double, std::milli>(b.time - a.time).count();
  }

  void run(const Stream&, const KernelTask& task) override { task.run(task.arguments); }

  void begin_capture(const Stream&) override { refuse_capture(); }
  void* end_capture(const Stream&) override { refuse_capture(); }
  bool is_capturing(const Stream&) override { return false; }
  void replay(void*, const Stream&) override { refuse_capture(); }
  void destroy_graph(void*) noexcept override {}

 private:
  static double process_seconds() {
    timespec used{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
  }
  [[noreturn]] static void refuse_capture() {
    GRADUS_FAIL("E-CAPTURE", "capture: cpu kernels run at once and cannot be recorded",
                hint("capture on a sim or cuda device"));
  }

  std::atomic<int64_t> streams_{0};
  BusyMeter meter_;
};

}  // namespace

Backend& cpu_backend() {
  static Backend* backend = new CpuBackend;  // never destroyed: tensors may outlive static objects
  return *backend;
}

}  // namespace gradus::runtime
