// The calls of Backend on CUDA's runtime. Internal to cuda/.
#pragma once
#include <gradus/backends/cuda/errors.h>
#include <gradus/backends/cuda/nvml.h>
#include <gradus/base/error.h>
#include <gradus/runtime/address_ranges.h>
#include <gradus/runtime/backend.h>
#include <gradus/runtime/refusals.h>
#include <gradus/runtime/stream.h>

#include <array>
#include <bitset>
#include <memory>
#include <vector>

namespace gradus::cuda {

struct StreamState;

/// Streams that are captured together. CUDA keeps the graph; this is what its errors do not say.
struct Capture {
  const StreamState* origin;
  std::vector<StreamState*> members;
  std::string broken;  ///< what was done that cannot be recorded; "" if nothing
};

struct StreamState {
  cudaStream_t handle;
  int64_t id;
  std::shared_ptr<Capture> capture;  ///< guarded by CudaBackend's capture_mutex_
};

struct EventState {
  cudaEvent_t handle;
  Device device;
  bool recorded = false;
  bool in_graph = false;           ///< recorded while capturing: no point in time but a place in a graph
  std::weak_ptr<Capture> capture;  ///< that capture, while it lasts
};

/// A graph that was made ready to run.
struct GraphState {
  cudaGraphExec_t handle;
  Device device;
};

class CudaBackend final : public runtime::Backend {
 public:
  CudaBackend();

  int device_count() const override { return device_count_; }
  std::string unavailable_reason() const override;
  runtime::DeviceProperties properties(int index) const override;
  runtime::MemoryInfo memory_info(int index) const override;
  int utilization(int index) override { return nvml_.utilization(index); }
  Telemetry telemetry(int index) override { return nvml_.read(index); }

  void* allocate(int index, size_t bytes) override;
  void free(int index, void* data) noexcept override;
  void* allocate_pinned(size_t bytes) override;
  void free_pinned(void* data) noexcept override;
  bool is_pinned(const void* data, size_t bytes) const override { return pinned_.hold(data, bytes); }
  void copy(void* to, Device to_device, const void* from, Device from_device, size_t bytes,
            const Stream& stream) override;

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

  void run(const Stream& stream, const runtime::KernelTask& task) override;

  void begin_capture(const Stream& stream) override;
  void* end_capture(const Stream& stream) override;
  bool is_capturing(const Stream& stream) override;
  void replay(void* graph, const Stream& stream) override;
  void destroy_graph(void* graph) noexcept override;

  /// The stream's state, its device made current.
  StreamState& enter(const Stream& stream);

 private:
  // A device's streams, found by id. Never taken away, so a state may be used without the lock.
  struct DeviceState {
    mutable std::shared_mutex mutex;
    std::vector<std::unique_ptr<StreamState>> streams;
    runtime::AddressRanges memory;
  };

  void enable_peer_access(int from, int to);
  void check_address(Device device, const void* data, size_t bytes, const char* which) const;

  // graph.cpp. All of these: under capture_mutex_.
  static void refuse_during_capture(Capture* capture, const char* call);
  static void refuse_captured(const EventState& event, const char* call);
  void join_capture(StreamState& stream, const EventState& event);

  int device_count_ = 0;
  cudaError_t init_error_ = cudaSuccess;
  std::array<DeviceState, Device::kMaxIndices> devices_;
  runtime::AddressRanges pinned_;
  Nvml nvml_;
  std::mutex capture_mutex_, peers_mutex_;
  std::array<std::bitset<Device::kMaxIndices>, Device::kMaxIndices> peers_;  // pairs asked for
};

/// Makes a device CUDA's current one on this thread.
void make_current(int index);

CudaBackend& backend();

}  // namespace gradus::cuda
