#include <cuda_runtime_api.h>
#include <gradus/backends/cuda/nvml.h>
#include <gradus/base/error.h>
#include <gradus/runtime/shared_library.h>

#include <cstdint>

namespace gradus::cuda {
namespace {

// NVML's documented values; its header does not come with the toolkit.
constexpr int kSuccess = 0, kClockSm = 1, kClockMemory = 2, kTemperatureGpu = 0;
struct Utilization {
  unsigned gpu, memory;
};
constexpr uint64_t kPowerCap = 0x4;
constexpr std::pair<uint64_t, const char*> kThrottle[] = {{0x8, "hardware slowdown"},
                                                          {0x20, "software thermal slowdown"},
                                                          {0x40, "hardware thermal slowdown"},
                                                          {0x80, "hardware power brake"}};

}  // namespace

struct Nvml::Functions {
  explicit Functions(const runtime::SharedLibrary& library)
      : init(library.function<int()>("nvmlInit_v2")),
        by_pci(library.function<int(const char*, void**)>("nvmlDeviceGetHandleByPciBusId_v2")),
        utilization(library.function<int(void*, Utilization*)>("nvmlDeviceGetUtilizationRates")),
        clock(library.function<int(void*, int, unsigned*)>("nvmlDeviceGetClockInfo")),
        power(library.function<int(void*, unsigned*)>("nvmlDeviceGetPowerUsage")),
        temperature(library.function<int(void*, int, unsigned*)>("nvmlDeviceGetTemperature")),
        throttle(
            library.function<int(void*, unsigned long long*)>("nvmlDeviceGetCurrentClocksThrottleReasons")),
        usable(init && by_pci && init() == kSuccess) {}

  int (*init)();
  int (*by_pci)(const char*, void**);
  int (*utilization)(void*, Utilization*);
  int (*clock)(void*, int, unsigned*);
  int (*power)(void*, unsigned*);
  int (*temperature)(void*, int, unsigned*);
  int (*throttle)(void*, unsigned long long*);
  bool usable;
};

const Nvml::Functions* Nvml::functions() {
  static const Functions functions{runtime::SharedLibrary({"libnvidia-ml.so.1"})};
  return functions.usable ? &functions : nullptr;
}

void* Nvml::handle_of(int device) {
  const Functions* nvml = functions();
  if (!nvml) return nullptr;
  std::lock_guard lock(mutex_);
  void*& handle = handles_[static_cast<size_t>(device)];
  char address[32];
  if (!handle && cudaDeviceGetPCIBusId(address, sizeof address, device) == cudaSuccess)
    nvml->by_pci(address, &handle);
  return handle;
}

int Nvml::utilization(int device) {
  void* handle = handle_of(device);
  Utilization u{};
  if (!handle || !functions()->utilization || functions()->utilization(handle, &u) != kSuccess) return -1;
  return static_cast<int>(u.gpu);
}

Telemetry Nvml::read(int device) {
  Telemetry t;
  void* handle = handle_of(device);
  if (!handle) return t;
  const Functions& nvml = *functions();
  unsigned value = 0;
  if (nvml.clock && nvml.clock(handle, kClockSm, &value) == kSuccess) t.clock_rate = static_cast<int>(value);
  if (nvml.clock && nvml.clock(handle, kClockMemory, &value) == kSuccess)
    t.memory_clock_rate = static_cast<int>(value);
  if (nvml.power && nvml.power(handle, &value) == kSuccess) t.power_draw = static_cast<int>(value);
  if (nvml.temperature && nvml.temperature(handle, kTemperatureGpu, &value) == kSuccess)
    t.temperature = static_cast<int>(value);
  unsigned long long reasons = 0;
  if (nvml.throttle) nvml.throttle(handle, &reasons);
  t.power_capped = reasons & kPowerCap;
  for (const auto& [bit, name] : kThrottle)
    if (reasons & bit) t.throttle += (t.throttle.empty() ? "" : ", ") + std::string(name);
  return t;
}

}  // namespace gradus::cuda
