// NVIDIA's management library, looked for at run time: what nvidia-smi shows. Internal to cuda/.
#pragma once
#include <gradus/runtime/device_info.h>

#include <array>
#include <mutex>

namespace gradus::cuda {

/// Answers "not known" (-1 and "") where the library is missing or refuses. Safe from any thread.
class Nvml {
 public:
  /// Percent of the last sample period, 1/6 s to 1 s, in which a kernel ran.
  int utilization(int device);
  Telemetry read(int device);

 private:
  struct Functions;
  // NVML counts all devices of the machine; the PCI address tells which one a device of CUDA's is.
  void* handle_of(int device);
  const Functions* functions();

  std::mutex mutex_;
  std::array<void*, Device::kMaxIndices> handles_{};
};

}  // namespace gradus::cuda
