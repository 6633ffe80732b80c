// Stands in for libnvidia-ml.so.1, with two devices whose values differ. Names and numbers are NVML's
// documentation's.
#include <cstring>

namespace {

struct Utilization {
  unsigned gpu, memory;
};
struct Gpu {
  const char* pci;
  unsigned utilization, clocks[3], power, temperature;  // percent, MHz (of graphics, SM, memory), mW, degrees
  unsigned long long throttle;
};
const Gpu kGpus[] = {{"0000:01:00.0", 41, {1400, 1401, 2601}, 250001, 61, 0x4},
                     {"0000:02:00.0", 42, {1500, 1502, 2602}, 250002, 92, 0x1 | 0x20 | 0x40}};
constexpr int kSuccess = 0, kInvalidArgument = 2, kNotFound = 6;

const Gpu& gpu(void* handle) { return *static_cast<const Gpu*>(handle); }

}  // namespace

extern "C" {

int nvmlInit_v2() { return kSuccess; }

int nvmlDeviceGetHandleByPciBusId_v2(const char* pci, void** handle) {
  for (const Gpu& one : kGpus) {
    if (std::strcmp(one.pci, pci) != 0) continue;
    *handle = const_cast<Gpu*>(&one);
    return kSuccess;
  }
  return kNotFound;
}

int nvmlDeviceGetUtilizationRates(void* handle, Utilization* rates) {
  *rates = {gpu(handle).utilization, 0};
  return kSuccess;
}

int nvmlDeviceGetClockInfo(void* handle, int clock, unsigned* mhz) {
  if (clock < 0 || clock > 2) return kInvalidArgument;
  *mhz = gpu(handle).clocks[clock];
  return kSuccess;
}

int nvmlDeviceGetPowerUsage(void* handle, unsigned* milliwatts) {
  *milliwatts = gpu(handle).power;
  return kSuccess;
}

int nvmlDeviceGetTemperature(void* handle, int sensor, unsigned* degrees) {
  if (sensor != 0) return kInvalidArgument;
  *degrees = gpu(handle).temperature;
  return kSuccess;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void* handle, unsigned long long* reasons) {
  *reasons = gpu(handle).throttle;
  return kSuccess;
}

}  // extern "C"
