// A machine on which CUDA works, for tests to take something away from.
#pragma once
#include <gradus/runtime/cuda_facts.h>

namespace gradus::testing {

inline LibraryFacts library(const char* name, const char* file, const char* version, int major) {
  return {.name = name,
          .file = file,
          .path = std::string("/usr/lib/x86_64-linux-gnu/") + file,
          .version = version,
          .major = major};
}

/// Driver for CUDA 12.9, a build with 12.8 for sm_80 and sm_90, one H100, all libraries.
inline CudaFacts working_cuda() {
  CudaFacts facts;
  facts.build = {.without = WithoutCuda::has_it, .runtime_version = 12080, .architectures = "80-real;90"};
  facts.driver = library("driver", "libcuda.so.1", "12.9", 12);
  facts.cudart = library("CUDA runtime", "libcudart.so.12", "12.8", 12);
  facts.cublas = library("cuBLAS", "libcublasLt.so.12", "12.8.4", 12);
  facts.cudnn = library("cuDNN", "libcudnn.so.9", "9.8.0", 9);
  facts.nccl = library("NCCL", "libnccl.so.2", "2.26.2", 2);
  facts.nvml = library("NVML", "libnvidia-ml.so.1", "575.51.03", 0);
  facts.driver_version = 12090, facts.driver_release = "575.51.03";
  facts.devices = {{.name = "NVIDIA H100",
                    .uuid = "GPU-0a",
                    .capability_major = 9,
                    .total_memory = size_t{80} << 30,
                    .free_memory = size_t{79} << 30}};
  facts.physical_count = 1, facts.physical_uuids = {"GPU-0a"};
  return facts;
}

}  // namespace gradus::testing
