// What devices there are and what they are like: torch.cuda's questions, for every type of device.
#pragma once
#include <gradus/runtime/device.h>

#include <cstddef>
#include <string>
#include <utility>

namespace gradus {

/// Facts about one device; 0 or "" where a device has no such thing.
struct DeviceProperties {
  std::string name;
  size_t total_memory = 0;  ///< bytes
  int multiprocessors = 0;  ///< cores on the cpu
  int capability_major = 0, capability_minor = 0;
};

/// Free and total bytes of a device's memory.
struct MemoryInfo {
  size_t free = 0, total = 0;
};

/// What a device's sensors say now; -1 and "" where it has none.
struct Telemetry {
  int clock_rate = -1;         ///< MHz of the multiprocessors, as torch.cuda.clock_rate()
  int memory_clock_rate = -1;  ///< MHz
  int power_draw = -1;         ///< milliwatts, as torch.cuda.power_draw()
  int temperature = -1;        ///< degrees Celsius, as torch.cuda.temperature()
  /// Why it is slowed down, by heat or by its power supply: "hardware thermal slowdown".
  std::string throttle{};
  bool power_capped = false;  ///< its clock is what its power limit allows, as it usually is in heavy work
};

/// True if this process can use a device of that type: torch.cuda.is_available(). For sim, which reads its
/// options when first asked, E-ENVIRONMENT is thrown where a variable cannot be understood (runtime/sim.h).
bool is_available(DeviceType type);
/// True if there is any cuda or sim device: torch.accelerator.is_available().
bool is_available();
/// The current cuda device where one is usable, else the current sim device. Throws E-DEVICE-UNAVAILABLE with
/// the reasons where there is neither.
Device current_accelerator();

/// The device of its type that the calling thread uses where no index is given, as in Device("cuda"); index 0
/// unless set_device() said otherwise.
Device current_device(DeviceType type);
/// Makes `device` the current one of its type on this thread. Throws as the queries below.
void set_device(Device device);

/// Makes a device current for a scope, as `with torch.cuda.device(d):`.
class DeviceGuard {
 public:
  explicit DeviceGuard(Device device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  Device before_;
};

// These throw E-DEVICE-UNAVAILABLE with the reason, or E-DEVICE-ORDINAL for an index that does not exist.
DeviceProperties get_device_properties(Device device = current_accelerator());
std::string get_device_name(Device device = current_accelerator());
/// {major, minor}; {0, 0} for a device that has no such thing.
std::pair<int, int> get_device_capability(Device device = current_accelerator());
/// What the device itself says: memory that the caching allocator keeps is not free (memory_stats() tells).
MemoryInfo mem_get_info(Device device = current_accelerator());

/// Percent, from 0 to 100, of the time since the call before in which a kernel ran: what nvidia-smi shows and
/// torch.cuda.utilization() returns. It says nothing of how much of the device a kernel uses. On the cpu: how
/// busy this process kept the cores that it may use. -1 where the device cannot tell.
int utilization(Device device = current_accelerator());

/// Its sensors' readings.
Telemetry telemetry(Device device = current_accelerator());

namespace detail {
void make_current(Device device) noexcept;  // unchecked
}

}  // namespace gradus
