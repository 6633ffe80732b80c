// The doctor: why no GPU is usable, and what to do about it. From facts alone, so that a test, or a lesson,
// can show every cause on a machine that has none of them.
#pragma once
#include <gradus/runtime/cuda_facts.h>

#include <optional>
#include <string>
#include <vector>

namespace gradus {

/// What a finding means for CUDA: it cannot be used at all, a part of it cannot, or it works and there is
/// something to know.
enum class Severity { blocking, warning, note };
const char* to_string(Severity severity);

/// One thing that is wrong or worth knowing.
struct Finding {
  std::string code;  ///< stable: "E-CUDA-DRIVER-OLD"
  Severity severity;
  std::string cause, remedy;
};

/// Every finding that the facts give, each cause apart: driver and devices first, then this build and the
/// libraries that it needs, then the kernels. None: CUDA works, and there is nothing to say.
std::vector<Finding> diagnose(const CudaFacts& facts);

/// Of these findings, what keeps one library from being used; nothing where the version needed is there.
std::optional<Finding> diagnose_cublas(const LibraryFacts& cublas, int needed_major);
std::optional<Finding> diagnose_cudnn(const LibraryFacts& cudnn, int needed_major);

/// True unless a finding is blocking.
bool is_usable(const std::vector<Finding>& findings);

/// "blocking E-CUDA-DRIVER-OLD: cause", and the remedy on a line of its own.
std::string to_string(const Finding& finding);

}  // namespace gradus
