// Which GPUs a CUDA build has kernels for.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace gradus {

/// One entry of CMAKE_CUDA_ARCHITECTURES: 90 is capability 9.0. A binary runs on that capability and later
/// minor ones of the same major; PTX is compiled by the driver for any later GPU.
struct CudaArchitecture {
  int number;
  bool binary, ptx;
  char suffix;  ///< 'a' of "90a", 'f' of "100f": kernels for this capability alone; 0 for none
};

/// "80-real;90" gives a binary for 8.0, and binary and PTX for 9.0. Entries that are no number ("native") are
/// left out.
std::vector<CudaArchitecture> parse_cuda_architectures(std::string_view list);

/// "sm_80, sm_90 and PTX of compute_90"
std::string to_string(const std::vector<CudaArchitecture>& architectures);

/// How a GPU of capability major.minor gets its kernels.
enum class KernelImage { none, ptx, binary };
KernelImage kernel_image(const std::vector<CudaArchitecture>& built, int major, int minor);

}  // namespace gradus
