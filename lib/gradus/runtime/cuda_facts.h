// What there is of CUDA on this machine and in this build, found without CUDA's headers, so that every build
// on every machine can say why there is no GPU.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace gradus {

/// A shared library: where it was found, or what became of the search.
struct LibraryFacts {
  std::string name{};     ///< "cuDNN"
  std::string file{};     ///< its name as the loader knows it, "libcudnn.so.9"
  std::string path{};     ///< where it was found; "" where it was not
  std::string version{};  ///< "9.19.0", as the library itself says; "" if it does not
  int major = 0;          ///< of the version; 0 if unknown
  std::string error{};    ///< why a file that is there cannot be loaded, in the loader's words
  bool found() const { return !path.empty(); }
};

/// A GPU that the driver shows to this process.
struct GpuFacts {
  std::string name{}, uuid{};
  int capability_major = 0, capability_minor = 0;
  size_t total_memory = 0, free_memory = 0;  ///< bytes; free is 0 where NVML is missing
};

/// Why a build has no CUDA backend.
enum class WithoutCuda { has_it, not_in_this_version, switched_off, no_compiler };

/// What this build expects of the machine.
struct CudaBuild {
  WithoutCuda without = WithoutCuda::not_in_this_version;
  int runtime_version = 0;      ///< of the toolkit that it was built with, 12080 for 12.8
  std::string architectures{};  ///< that it has kernels for, as CMake lists them: "80-real;90"
  int cudnn_major = 9, nccl_major = 2;
  bool has_cuda() const { return without == WithoutCuda::has_it; }
};

struct CudaFacts {
  CudaBuild build;
  LibraryFacts driver = {.name = "driver", .file = "libcuda.so.1"};
  LibraryFacts cudart = {.name = "CUDA runtime"}, cublas = {.name = "cuBLAS"}, cudnn = {.name = "cuDNN"},
               nccl = {.name = "NCCL"}, nvml = {.name = "NVML", .file = "libnvidia-ml.so.1"};
  int driver_version = 0;       ///< the newest CUDA that the driver knows, 12020 for 12.2; 0 without a driver
  std::string driver_release;   ///< the driver's own version, "535.104.05"
  int init_error = 0;           ///< what cuInit() returned
  std::string init_error_name;  ///< "CUDA_ERROR_NO_DEVICE"
  std::optional<std::string> visible_devices;  ///< CUDA_VISIBLE_DEVICES when the program began to use CUDA
  std::vector<GpuFacts> devices;               ///< those that the driver shows to this process
  int physical_count = -1;                     ///< GPUs in the machine, hidden ones included; -1: unknown
  std::vector<std::string> physical_uuids;
};

/// Never throws; what is missing or broken is a fact.
CudaFacts gather_cuda_facts();

/// cuBLASLt, which is the part of cuBLAS that is used, and cuDNN: the given major version, or another one if
/// only that is there. As facts, where they are not there either.
LibraryFacts find_cublas(int major);
LibraryFacts find_cudnn(int major);

/// "12.2" of 12020, CUDA's way of writing versions.
std::string cuda_version_text(int version);

}  // namespace gradus
