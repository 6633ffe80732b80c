#include <gradus/backends/sim/backend.h>
#include <gradus/backends/sim/fault_handler.h>
#include <gradus/backends/sim/sim_backend.h>
#include <gradus/base/parallel.h>

#include <cstdlib>

namespace gradus {
namespace sim {

SimBackend::SimBackend() : options_(options_from_environment()) {
  device_count_ = options_.devices;
  capacity_ = options_.memory;
  allocations_until_failure_ = options_.fail_allocation;
  launches_until_loss_ = options_.lose_device;
  scheduler_.set_jitter(options_.jitter_us);
  notice_forks();
  install_fault_handler(memory_.begin(), DeviceMemory::kMostPerDevice, DeviceMemory::kMaxDevices);
  for (int d = 0; d < DeviceMemory::kMaxDevices; ++d) create_stream(d, true);  // the default streams
}

int SimBackend::device_count() const { return device_count_.load(); }

runtime::DeviceProperties SimBackend::properties(int index) const {
  return {.name = "SIMULATED accelerator",
          .total_memory = memory_info(index).total,
          .multiprocessors = get_num_threads()};
}

runtime::MemoryInfo SimBackend::memory_info(int index) const {
  const size_t used = memory_.used(index), total = capacity_.load();
  return {used < total ? total - used : 0, total};
}

int SimBackend::utilization(int index) {
  DeviceState& device = devices_[index];
  return device.meter.read(1e-9 * static_cast<double>(device.busy_ns.load()));
}

void* SimBackend::allocate(int index, size_t bytes) {
  check_usable(index);
  {
    auto lock = scheduler_.lock();
    if (allocations_until_failure_ > 0 && --allocations_until_failure_ == 0) return nullptr;
  }
  return memory_.allocate(index, bytes, capacity_.load());
}

// Waits for all that the device still does, as cudaFree does: a kernel may be using this memory.
void SimBackend::free(int index, void* data) noexcept {
  wait_until_idle(index);
  auto lock = scheduler_.lock();
  races_.forget(data, memory_.free(index, data));
}

Options SimBackend::options() {
  auto lock = scheduler_.lock();
  return options_;
}

void SimBackend::configure(const Options& options) {
  check(options);
  for (int d = 0; d < DeviceMemory::kMaxDevices; ++d) wait_until_idle(d);
  auto lock = scheduler_.lock();
  options_ = options;
  device_count_ = options.devices;
  capacity_ = options.memory;
  allocations_until_failure_ = options.fail_allocation;
  launches_until_loss_ = options.lose_device;
  scheduler_.set_jitter(options.jitter_us);
  races_.clear();
}

void SimBackend::reset_device(int index) {
  GRADUS_CHECK(index >= 0 && index < device_count(), "E-DEVICE-ORDINAL",
               "reset_device: invalid device ordinal: ", index, ", but there are ", device_count(),
               " sim devices", hint("indices count from 0"));
  devices_[index].failed = true;  // what is queued is passed over
  wait_until_idle(index);
  std::lock_guard lock(failure_mutex_);
  devices_[index].failure.reset();
  devices_[index].failed = false;
}

SimBackend& backend() {
  // Never destroyed: tensors may outlive static objects. Its engines end, with what is queued undone, before
  // the static objects are gone that were made before it. What our kernels make later is never destroyed;
  // what oneDNN makes later is, while an engine may still run (docs/simulated_device.md).
  static SimBackend* backend = [] {
    auto* made = new SimBackend;
    std::atexit([] { sim::backend().stop(); });
    return made;
  }();
  return *backend;
}

Options options() { return backend().options(); }
void configure(const Options& options) { backend().configure(options); }
void reset_device(int index) { backend().reset_device(index); }

}  // namespace sim

runtime::Backend& runtime::sim_backend() { return sim::backend(); }

}  // namespace gradus
