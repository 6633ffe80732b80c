#include <gradus/base/version.h>
#include <gradus/runtime/backend.h>
#include <gradus/runtime/environment.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>
#include <thread>

namespace gradus {
namespace {

std::string compiler() {
#ifdef __clang__
  return str("clang ", __clang_major__, ".", __clang_minor__, ".", __clang_patchlevel__);
#else
  return str("g++ ", __GNUC__, ".", __GNUC_MINOR__, ".", __GNUC_PATCHLEVEL__);
#endif
}

std::string openmp_version() {
#if defined(GRADUS_STD_THREADS) || !defined(_OPENMP)
  return "";
#else
  return std::to_string(_OPENMP);  // the specification's year and month
#endif
}

BuildFacts build_facts() {
  return {.version = GRADUS_VERSION,
          .type = GRADUS_BUILD_TYPE,
          .sanitizer = GRADUS_SANITIZER,
          .compiler = compiler(),
          .onednn = runtime::onednn_version(),
          .openmp = openmp_version()};
}

std::string first_line(const char* path) {
  std::string line;
  std::getline(std::ifstream(path) >> std::ws, line);
  return line;
}

std::string os_name() {
  const std::string key = "PRETTY_NAME=";
  std::ifstream release("/etc/os-release");
  for (std::string line; std::getline(release, line);) {
    if (!line.starts_with(key)) continue;
    std::erase(line, '"');
    return line.substr(key.size());
  }
  return "";
}

// A virtual machine often hides its processor's model, but not what the processor can do.
std::string vector_units() {
  constexpr std::string_view kUnits[] = {"avx2",     "avx512f", "avx512_bf16", "avx512_fp16", "amx_bf16",
                                         "amx_fp16", "asimd",   "sve",         "bf16"};
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("flags") && !line.starts_with("Features")) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    std::string found;
    for (std::string word; words >> word;)
      if (std::ranges::find(kUnits, word) != std::end(kUnits)) found += (found.empty() ? "" : " ") + word;
    return found;
  }
  return "";
}

HostFacts host_facts() {
  HostFacts host;
  host.cpu = get_device_name("cpu");
  host.vector_units = vector_units();
  host.os = os_name();
  utsname system;
  if (uname(&system) == 0) host.kernel = str(system.sysname, " ", system.release, " ", system.machine);
  host.governor = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  host.cores = static_cast<int>(std::thread::hardware_concurrency());  // respects the affinity mask
  const MemoryInfo memory = mem_get_info("cpu");
  host.total_memory = memory.total, host.free_memory = memory.free;
  double minutes[1] = {0};
  if (getloadavg(minutes, 1) == 1) host.load = minutes[0];
  return host;
}

std::vector<DeviceFacts> usable_devices() {
  std::vector<DeviceFacts> devices;
  for (const DeviceType type : {DeviceType::cpu, DeviceType::sim, DeviceType::cuda}) {
    if (!unavailable_reason(type).empty()) continue;
    for (int i = 0; i < device_count(type); ++i) {
      const Device device(type, i);
      devices.push_back({device, get_device_properties(device), mem_get_info(device)});
    }
  }
  return devices;
}

}  // namespace

std::string unavailable_reason(DeviceType type) {
  try {
    runtime::Backend* backend = runtime::find_backend(type);
    if (!backend) return str("this build has no ", to_string(type), " backend");
    return backend->device_count() > 0 ? "" : backend->unavailable_reason();
  } catch (const Error& error) {  // a setting of the simulated device that cannot be read
    return error.what();
  }
}

Environment gather_environment() {
  return {build_facts(), host_facts(), usable_devices(), gather_cuda_facts()};
}

}  // namespace gradus
