// What a program finds on this machine: the build, the host, the devices, CUDA's driver and libraries. Plain
// facts; what they mean is diagnosis.h, and as JSON they are environment_json() (io/).
#pragma once
#include <gradus/runtime/cuda_facts.h>
#include <gradus/runtime/device_info.h>

#include <string>
#include <vector>

namespace gradus {

/// How this copy of Gradus was built, and the libraries it runs with; "" for what is not used.
struct BuildFacts {
  std::string version, type, sanitizer, compiler, onednn, openmp;
};

/// The machine; "" or 0 for what cannot be read here.
struct HostFacts {
  std::string cpu, os, kernel, governor;
  std::string vector_units;  ///< of the processor's, those that decide its speed: "avx2 avx512f avx512_bf16"
  int cores = 0;             ///< that this process may run on
  size_t total_memory = 0, free_memory = 0;
  double load = 0;  ///< runnable processes, averaged over the last minute
};

/// A device that this program can use.
struct DeviceFacts {
  Device device;
  DeviceProperties properties;
  MemoryInfo memory;
};

struct Environment {
  BuildFacts build;
  HostFacts host;
  std::vector<DeviceFacts> devices;
  CudaFacts cuda;
};

/// Looks at everything; never throws, and takes less than a second unless a library's files must be read from
/// a slow disk. CUDA is initialised where there is a driver.
Environment gather_environment();

/// Why this program can use no device of that type; "" where it can.
std::string unavailable_reason(DeviceType type);

namespace runtime {
/// The version of the oneDNN library that is loaded, "2.6.3". Defined by the cpu backend.
std::string onednn_version();
}  // namespace runtime

}  // namespace gradus
