// The calls of Backend, put together from memory, scheduler, race detector and graphs. Internal to sim/.
#pragma once
#include <gradus/backends/sim/graph.h>
#include <gradus/backends/sim/memory.h>
#include <gradus/backends/sim/options.h>
#include <gradus/backends/sim/pinned_memory.h>
#include <gradus/backends/sim/race_detector.h>
#include <gradus/backends/sim/scheduler.h>
#include <gradus/base/error.h>
#include <gradus/runtime/backend.h>
#include <gradus/runtime/busy_meter.h>
#include <gradus/runtime/refusals.h>
#include <gradus/runtime/stream.h>

#include <chrono>
#include <optional>

namespace gradus::sim {

/// A point in a stream, with what its time was. Shared with the task that takes the time.
struct SimEvent {
  struct Mark {
    std::chrono::steady_clock::time_point time;
  };
  Point point;
  std::shared_ptr<Mark> mark;      // of the last record(); null before
  Clock clock;                     // for the race detector
  bool in_graph = false;           // recorded while capturing: no point in time but a place in a graph
  std::weak_ptr<Capture> capture;  // that capture, while it lasts
  CaptureClock captured;
};

class SimBackend final : public runtime::Backend {
 public:
  SimBackend();

  int device_count() const override;
  std::string unavailable_reason() const override { return ""; }
  runtime::DeviceProperties properties(int index) const override;
  runtime::MemoryInfo memory_info(int index) const override;

  int utilization(int index) override;

  void* allocate(int index, size_t bytes) override;
  void free(int index, void* data) noexcept override;
  void* allocate_pinned(size_t bytes) override { return pinned_.allocate(bytes); }
  void free_pinned(void* data) noexcept override { pinned_.free(data); }
  bool is_pinned(const void* data, size_t bytes) const override { return pinned_.holds(data, bytes); }

  void copy(void* to, Device to_device, const void* from, Device from_device, size_t bytes,
            const Stream& stream) override;
  void run(const Stream& stream, const runtime::KernelTask& task) override;

  int64_t create_stream(int index, bool blocking) override;
  bool query(const Stream& stream) override;
  void synchronize(const Stream& stream) override;
  void synchronize_device(int index) override;

  void* create_event(int index) override;
  void destroy_event(int index, void* event) noexcept override;
  void record(void* event, const Stream& stream) override;
  void wait(void* event, const Stream& stream) override;
  bool query_event(void* event) override;
  void synchronize_event(void* event) override;
  double elapsed_ms(void* start, void* end) override;

  void begin_capture(const Stream& stream) override;
  void* end_capture(const Stream& stream) override;
  bool is_capturing(const Stream& stream) override;
  void replay(void* graph, const Stream& stream) override;
  void destroy_graph(void* graph) noexcept override;

  Options options();
  void configure(const Options& options);
  void reset_device(int index);
  void stop() { scheduler_.stop(); }

 private:
  // What has made a device unusable, until it is reset.
  struct Failure {
    std::string code, text, hint;
  };
  struct DeviceState {
    std::vector<std::unique_ptr<Queue>> queues;  // by stream id
    std::optional<Failure> failure;              // guarded by failure_mutex_
    std::atomic<bool> failed{false};
    std::atomic<int64_t> busy_ns{0};  // in which the compute engine ran its kernels
    runtime::BusyMeter meter;
  };

  // errors.cpp
  // Throws the device's failure; `own`: the call that failed is the one that asks.
  void check_usable(int device, bool own = false);
  static void notice_forks();
  void fail_device(int device, Failure failure);
  static Failure illegal_address(int device, const char* name, int operand, const TensorArg& tensor);
  Failure failure_from(int device, int waiting);
  static Failure failure_of(int device, const char* name, std::exception_ptr error);

  // work.cpp. All of these: under scheduler_.lock().
  Queue& queue_of(const Stream& stream);
  Task prepare(Queue& queue, const Item& item);
  Point enqueue(Queue& queue, const Item& item);
  Point enqueue_all(Queue& queue, std::span<const Item> items, bool caller_waits = false);
  std::vector<Point> legacy_order(Queue& queue);
  void count_launch(int device);
  void wait_for_room(const Stream& stream);
  Work kernel_work(int device, const runtime::KernelTask& task);
  void run_kernel(int device, const runtime::KernelTask& task);
  void check_address(int device, const void* data, size_t bytes, const char* which) const;
  Item copy_item(void* to, Device to_device, const void* from, Device from_device, size_t bytes,
                 int stream_device) const;

  // streams.cpp
  void wait_until_idle(int device);
  void host_waits_for(const Point& point, const Clock& clock, int device, bool own = false);
  void refuse_during_capture(Capture* capture, const char* call);
  void refuse_captured(const SimEvent& event, const char* call);
  void join_capture(Queue& queue, const SimEvent& event);

  std::atomic<int> device_count_{0};
  std::atomic<size_t> capacity_{0};  // of each device, in bytes
  DeviceMemory memory_;
  PinnedMemory pinned_;
  Scheduler scheduler_;
  std::mutex failure_mutex_;
  std::array<DeviceState, DeviceMemory::kMaxDevices> devices_;

  // Guarded by scheduler_.lock()
  RaceDetector races_;
  Options options_;
  int queue_count_ = 0;
  int64_t allocations_until_failure_ = 0, launches_until_loss_ = 0;
};

SimBackend& backend();

}  // namespace gradus::sim
