#include <gradus/base/error.h>
#include <gradus/runtime/cuda_architectures.h>

#include <algorithm>
#include <charconv>

namespace gradus {

std::vector<CudaArchitecture> parse_cuda_architectures(std::string_view list) {
  std::vector<CudaArchitecture> built;
  while (!list.empty()) {
    const size_t end = std::min(list.find(';'), list.size());
    const std::string_view entry = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    CudaArchitecture a{0, !entry.ends_with("-virtual"), !entry.ends_with("-real"), 0};
    const auto [rest, error] = std::from_chars(entry.data(), entry.data() + entry.size(), a.number);
    if (error != std::errc()) continue;
    if (rest != entry.data() + entry.size() && *rest != '-') a.suffix = *rest;
    built.push_back(a);
  }
  return built;
}

std::string to_string(const std::vector<CudaArchitecture>& architectures) {
  std::string binaries, ptx;
  for (const CudaArchitecture& a : architectures) {
    const std::string suffix = a.suffix ? std::string(1, a.suffix) : "";
    if (a.binary) binaries += str(binaries.empty() ? "" : ", ", "sm_", a.number, suffix);
    if (a.ptx) ptx += str(ptx.empty() ? "" : ", ", "compute_", a.number, suffix);
  }
  if (ptx.empty()) return binaries.empty() ? "none" : binaries;
  return str(binaries, binaries.empty() ? "" : " and ", "PTX of ", ptx);
}

KernelImage kernel_image(const std::vector<CudaArchitecture>& built, int major, int minor) {
  const int capability = 10 * major + minor;
  KernelImage best = KernelImage::none;
  for (const CudaArchitecture& a : built) {
    const bool same = a.number == capability;
    const bool same_major = a.number / 10 == major && a.number <= capability;
    if (a.binary && (a.suffix ? same : same_major)) return KernelImage::binary;
    if (a.ptx && (a.suffix ? same : a.number <= capability)) best = KernelImage::ptx;
  }
  return best;
}

}  // namespace gradus
