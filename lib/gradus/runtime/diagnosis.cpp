#include <gradus/base/error.h>
#include <gradus/runtime/cuda_architectures.h>
#include <gradus/runtime/diagnosis.h>
#include <gradus/runtime/visible_devices.h>

namespace gradus {
namespace {

using Findings = std::vector<Finding>;

constexpr int kNoDevice = 100;  // CUDA_ERROR_NO_DEVICE

// The oldest driver of each CUDA major version: later minor versions run on it too.
std::string oldest_driver(int cuda_major) {
  const int release = cuda_major == 11 ? 450 : cuda_major == 12 ? 525 : cuda_major == 13 ? 580 : 0;
  return release ? str(" (", release, " or newer)") : "";
}

Finding missing_driver(const LibraryFacts& driver) {
  if (!driver.error.empty())
    return {"E-CUDA-DRIVER-BROKEN", Severity::blocking,
            str("the NVIDIA driver's library is there but cannot be loaded: ", driver.error),
            "reinstall the driver; a file on LD_LIBRARY_PATH hides the driver's own"};
  return {"E-CUDA-NO-DRIVER", Severity::blocking,
          str(driver.file, ", the NVIDIA driver's library, was not found"),
          "without an NVIDIA GPU nothing is amiss: use cpu or sim. With one, install its driver; a container "
          "must be started with the GPU (docker run --gpus all)"};
}

// Within a major version an older driver serves a newer runtime; across major versions it does not.
void compare_versions(const CudaFacts& facts, Findings& out) {
  const int driver = facts.driver_version, runtime = facts.build.runtime_version;
  if (driver == 0 || driver >= runtime) return;
  const std::string d = cuda_version_text(driver), r = cuda_version_text(runtime);
  const int major = runtime / 1000;
  if (driver / 1000 < major) {
    out.push_back(
        {"E-CUDA-DRIVER-OLD", Severity::blocking,
         str("CUDA driver version is insufficient for CUDA runtime version: the driver supports CUDA "
             "up to ",
             d, ", this build needs ", r),
         str("install an NVIDIA driver for CUDA ", major, oldest_driver(major),
             ", or build with a CUDA toolkit ", driver / 1000, ".x")});
  } else {
    out.push_back(
        {"N-CUDA-MINOR", Severity::note,
         str("the driver supports CUDA up to ", d, ", this build was made with ", r,
             ": that works, but PTX needs a newer driver"),
         "nothing to do, unless a GPU is newer than all kernels of this build; then update the driver"});
  }
}

std::string remedy_of_init(int error) {
  switch (error) {
    case 34:  // CUDA_ERROR_STUB_LIBRARY
      return "a stub that is only for linking was loaded: take the folder 'stubs' off LD_LIBRARY_PATH";
    case 803:  // CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
      return "the driver was updated while its kernel module stayed loaded: restart the machine";
    case 804:  // CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE
      return "CUDA's compatibility package does not serve this GPU: remove it (cuda-compat), update the "
             "driver";
    default:
      return "see what nvidia-smi says; restarting the machine, or loading the module nvidia-uvm, often "
             "helps";
  }
}

Finding no_device(const CudaFacts& facts) {
  const auto& variable = facts.visible_devices;
  if (variable && facts.physical_count != 0) {
    const auto visible = runtime::parse_visible_devices(variable, facts.physical_count, facts.physical_uuids);
    const bool explained = facts.physical_count > 0 && visible.devices.empty();
    return {
        "E-CUDA-HIDDEN", Severity::blocking,
        explained ? visible.warning
                  : str("no device is visible, and CUDA_VISIBLE_DEVICES='", *variable, "' is set"),
        "unset CUDA_VISIBLE_DEVICES, or list indices from 0 as nvidia-smi -L shows them; it is read when the "
        "program starts"};
  }
  return {
      "E-CUDA-NO-DEVICE", Severity::blocking, "the driver is there, but it finds no device",
      "nvidia-smi and lspci tell whether the system sees a GPU; a container must be started with it (docker "
      "run --gpus all)"};
}

void check_devices(const CudaFacts& facts, Findings& out) {
  if (facts.init_error != 0 && facts.init_error != kNoDevice) {
    const std::string name = facts.init_error_name.empty() ? "" : str(" (", facts.init_error_name, ")");
    out.push_back({"E-CUDA-INIT", Severity::blocking, str("cuInit fails with error ", facts.init_error, name),
                   remedy_of_init(facts.init_error)});
    return;
  }
  if (facts.devices.empty()) {
    out.push_back(no_device(facts));
    return;
  }
  if (facts.physical_count < 0) return;
  const auto visible =
      runtime::parse_visible_devices(facts.visible_devices, facts.physical_count, facts.physical_uuids);
  const bool explained = visible.devices.size() == facts.devices.size();  // the driver's count is the truth
  if (explained && !visible.warning.empty())
    out.push_back({"N-CUDA-LIST", Severity::note, visible.warning,
                   "list indices from 0 as nvidia-smi -L shows them, each once"});
}

Finding no_cuda_in_build(WithoutCuda why) {
  constexpr const char* build = "./gradus learn --cuda builds with CUDA";
  Finding finding{"E-CUDA-BUILD", Severity::blocking, "this Gradus was built without CUDA", build};
  if (why == WithoutCuda::not_in_this_version) {
    finding.cause += ": this version has no CUDA backend";
    finding.remedy = "use cpu or sim; a later version brings it";
  } else if (why == WithoutCuda::switched_off) {
    finding.cause += ": GRADUS_CUDA=OFF";
  } else {
    finding.cause += ": no CUDA compiler (nvcc 12.4 or newer) was found";
    finding.remedy = str("./gradus setup --cuda installs one; then ", build);
  }
  return finding;
}

// One library that the build needs at a major version. `code` is the beginning of the findings' codes.
std::optional<Finding> check_library(const LibraryFacts& library, int needed, const std::string& code,
                                     Severity severity, const std::string& without_it) {
  const std::string install = str("install ", library.name, " ", needed,
                                  " (./gradus setup --cuda does), or put its folder on LD_LIBRARY_PATH");
  if (!library.found())
    return Finding{
        code + "-MISSING", severity,
        str(library.name, " ", needed, " is missing: ",
            library.error.empty() ? str(library.file, ": cannot open shared object file") : library.error,
            "; without it ", without_it),
        install};
  if (library.major != needed)
    return Finding{code + "-VERSION", severity,
                   str("this build needs ", library.name, " ", needed, ", found ", library.version, " at ",
                       library.path, "; without it ", without_it),
                   install};
  return {};
}

void check_kernels(const CudaFacts& facts, Findings& out) {
  const auto built = parse_cuda_architectures(facts.build.architectures);
  const bool ptx_runs = facts.driver_version >= facts.build.runtime_version;
  for (size_t i = 0; i < facts.devices.size(); ++i) {
    const GpuFacts& gpu = facts.devices[i];
    const KernelImage image = kernel_image(built, gpu.capability_major, gpu.capability_minor);
    if (image == KernelImage::binary || (image == KernelImage::ptx && ptx_runs)) continue;
    const std::string device = str("device ", i, " (", gpu.name, ", capability ", gpu.capability_major, ".",
                                   gpu.capability_minor, ")");
    const std::string rebuild =
        str("build for it: cmake -DGRADUS_CUDA_ARCHS=", gpu.capability_major, gpu.capability_minor);
    if (image == KernelImage::ptx)
      out.push_back({"E-CUDA-PTX", Severity::blocking,
                     str("the provided PTX was compiled with an unsupported toolchain: ", device,
                         " needs this build's PTX of CUDA ", cuda_version_text(facts.build.runtime_version),
                         ", the driver knows ", cuda_version_text(facts.driver_version)),
                     str("update the driver, or ", rebuild)});
    else
      out.push_back({"E-CUDA-ARCH", Severity::blocking,
                     str("no kernel image is available for execution on the device: ", device,
                         ", this build has kernels for ", to_string(built)),
                     rebuild});
  }
}

}  // namespace

const char* to_string(Severity severity) {
  constexpr const char* names[] = {"blocking", "warning", "note"};
  return names[static_cast<int>(severity)];
}

std::vector<Finding> diagnose(const CudaFacts& facts) {
  Findings out;
  const CudaBuild& build = facts.build;
  if (!facts.driver.found()) {
    out.push_back(missing_driver(facts.driver));
  } else {
    if (build.has_cuda()) compare_versions(facts, out);
    if (is_usable(out)) check_devices(facts, out);
  }
  if (!build.has_cuda()) {
    out.push_back(no_cuda_in_build(build.without));
    return out;
  }
  const int major = build.runtime_version / 1000;
  for (const auto& finding :
       {diagnose_cublas(facts.cublas, major), diagnose_cudnn(facts.cudnn, build.cudnn_major),
        check_library(facts.nccl, build.nccl_major, "E-NCCL", Severity::warning,
                      "several GPUs cannot work together")})
    if (finding) out.push_back(*finding);
  check_kernels(facts, out);
  return out;
}

std::optional<Finding> diagnose_cublas(const LibraryFacts& cublas, int needed_major) {
  return check_library(cublas, needed_major, "E-CUBLAS", Severity::blocking, "there is no matrix product");
}
std::optional<Finding> diagnose_cudnn(const LibraryFacts& cudnn, int needed_major) {
  return check_library(cudnn, needed_major, "E-CUDNN", Severity::blocking, "there is no convolution");
}

bool is_usable(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings)
    if (finding.severity == Severity::blocking) return false;
  return true;
}

std::string to_string(const Finding& finding) {
  return str(to_string(finding.severity), " ", finding.code, ": ", finding.cause,
             "\n  hint: ", finding.remedy);
}

}  // namespace gradus
