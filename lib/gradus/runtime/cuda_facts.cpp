#include <gradus/base/error.h>
#include <gradus/base/version.h>
#include <gradus/runtime/cuda_facts.h>
#include <gradus/runtime/shared_library.h>
#include <gradus/runtime/visible_devices.h>

#include <string_view>

namespace gradus {
namespace {

using runtime::SharedLibrary;
using Files = std::vector<std::string>;

// CUDA's documented numbers; its headers are not needed here.
constexpr int kSuccess = 0, kNotFound = 500;
constexpr int kCapabilityMajor = 75, kCapabilityMinor = 76;
constexpr int kTextSize = 256;

LibraryFacts facts_of(const SharedLibrary& library, const LibraryFacts& known) {
  LibraryFacts facts = known;
  facts.file = library.file(), facts.path = library.path(), facts.error = library.error();
  return facts;
}

// "libcudnn.so.9": the major version that this build needs first, so that another is only found without it.
Files files_of(const std::string& stem, int needed, const std::vector<int>& majors) {
  Files files;
  if (needed > 0) files.push_back(str(stem, ".so.", needed));
  for (const int major : majors)
    if (major != needed) files.push_back(str(stem, ".so.", major));
  return files;
}

void set_version(LibraryFacts& facts, int major, int minor, int patch) {
  facts.major = major;
  facts.version = str(major, ".", minor, ".", patch);
}

LibraryFacts find_cudart(const LibraryFacts& known, int needed) {
  Files files = files_of("libcudart", needed, {13, 12});
  files.push_back("libcudart.so.11.0");
  const SharedLibrary library(files);
  LibraryFacts facts = facts_of(library, known);
  int version = 0;
  if (auto* get = library.function<int(int*)>("cudaRuntimeGetVersion"); get && get(&version) == kSuccess)
    facts.major = version / 1000, facts.version = cuda_version_text(version);
  return facts;
}

LibraryFacts find_nccl(const LibraryFacts& known, int needed) {
  const SharedLibrary library(files_of("libnccl", needed, {2}));
  LibraryFacts facts = facts_of(library, known);
  int v = 0;
  if (auto* get = library.function<int(int*)>("ncclGetVersion"); get && get(&v) == kSuccess) {
    const int unit = v >= 10000 ? 10000 : 1000;  // 22809 is 2.28.9; 2804 is 2.8.4
    set_version(facts, v / unit, v % unit / 100, v % 100);
  }
  return facts;
}

std::string uuid_text(const unsigned char (&bytes)[16]) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    for (const int digit : {bytes[i] >> 4, bytes[i] & 15}) text += "0123456789abcdef"[digit];
  }
  return text;
}

// The driver's calls; a null one is missing from a driver too old or too odd.
struct Driver {
  explicit Driver(const SharedLibrary& library)
      : version(library.function<int(int*)>("cuDriverGetVersion")),
        init(library.function<int(unsigned)>("cuInit")),
        error_name(library.function<int(int, const char**)>("cuGetErrorName")),
        count(library.function<int(int*)>("cuDeviceGetCount")),
        get(library.function<int(int*, int)>("cuDeviceGet")),
        name(library.function<int(char*, int, int)>("cuDeviceGetName")),
        attribute(library.function<int(int*, int, int)>("cuDeviceGetAttribute")),
        memory(library.function<int(size_t*, int)>("cuDeviceTotalMem_v2")),
        uuid(library.function<int(unsigned char*, int)>("cuDeviceGetUuid")) {}
  bool complete() const { return init && count && get && name && attribute && memory && uuid; }

  int (*version)(int*);
  int (*init)(unsigned);
  int (*error_name)(int, const char**);
  int (*count)(int*);
  int (*get)(int*, int);
  int (*name)(char*, int, int);
  int (*attribute)(int*, int, int);
  int (*memory)(size_t*, int);
  int (*uuid)(unsigned char*, int);
};

GpuFacts gpu_facts(const Driver& driver, int index) {
  GpuFacts gpu;
  int device = 0;
  if (driver.get(&device, index) != kSuccess) return gpu;
  char name[kTextSize] = {};
  if (driver.name(name, kTextSize - 1, device) == kSuccess) gpu.name = name;
  driver.attribute(&gpu.capability_major, kCapabilityMajor, device);
  driver.attribute(&gpu.capability_minor, kCapabilityMinor, device);
  driver.memory(&gpu.total_memory, device);
  unsigned char bytes[16] = {};
  if (driver.uuid(bytes, device) == kSuccess) gpu.uuid = uuid_text(bytes);
  return gpu;
}

void ask_driver(const SharedLibrary& library, CudaFacts& facts) {
  if (!library.found()) return;
  const Driver driver(library);
  if (!driver.version || driver.version(&facts.driver_version) != kSuccess) facts.driver_version = 0;
  if (facts.driver_version > 0) facts.driver.version = cuda_version_text(facts.driver_version);
  facts.driver.major = facts.driver_version / 1000;
  facts.init_error = driver.complete() ? driver.init(0) : kNotFound;
  const char* name = nullptr;
  if (facts.init_error != kSuccess && driver.error_name &&
      driver.error_name(facts.init_error, &name) == kSuccess)
    facts.init_error_name = name ? name : "";
  int count = 0;
  if (facts.init_error != kSuccess || driver.count(&count) != kSuccess) return;
  for (int i = 0; i < count; ++i) facts.devices.push_back(gpu_facts(driver, i));
}

struct NvmlMemory {
  unsigned long long total, free, used;
};

// NVML sees all GPUs, whatever CUDA_VISIBLE_DEVICES says, and their free memory without a context.
void ask_nvml(const SharedLibrary& library, CudaFacts& facts) {
  auto* init = library.function<int()>("nvmlInit_v2");
  auto* release = library.function<int(char*, unsigned)>("nvmlSystemGetDriverVersion");
  auto* count = library.function<int(unsigned*)>("nvmlDeviceGetCount_v2");
  auto* get = library.function<int(unsigned, void**)>("nvmlDeviceGetHandleByIndex_v2");
  auto* uuid = library.function<int(void*, char*, unsigned)>("nvmlDeviceGetUUID");
  auto* memory = library.function<int(void*, NvmlMemory*)>("nvmlDeviceGetMemoryInfo");
  if (!init || !release || !count || !get || !uuid || !memory || init() != kSuccess) return;
  char text[kTextSize] = {};
  if (release(text, kTextSize - 1) == kSuccess) facts.driver_release = facts.nvml.version = text;
  unsigned n = 0;
  if (count(&n) == kSuccess) facts.physical_count = static_cast<int>(n);
  for (unsigned i = 0; i < n; ++i) {
    void* device = nullptr;
    char id[kTextSize] = {};
    if (get(i, &device) != kSuccess || uuid(device, id, kTextSize - 1) != kSuccess) continue;
    facts.physical_uuids.push_back(id);
    NvmlMemory bytes = {};
    if (memory(device, &bytes) != kSuccess) continue;
    for (GpuFacts& gpu : facts.devices)
      if (gpu.uuid == id) gpu.free_memory = bytes.free;
  }
}

CudaBuild this_build() {
  CudaBuild build;
  const std::string_view why = GRADUS_WITHOUT_CUDA;
  build.without = why.empty()             ? WithoutCuda::has_it
                  : why == "switched off" ? WithoutCuda::switched_off
                  : why == "no compiler"  ? WithoutCuda::no_compiler
                                          : WithoutCuda::not_in_this_version;
  if (!build.has_cuda()) return build;
  build.runtime_version = GRADUS_CUDA_VERSION;
  build.architectures = GRADUS_CUDA_ARCHITECTURES;
  return build;
}

}  // namespace

CudaFacts gather_cuda_facts() {
  CudaFacts facts;
  facts.build = this_build();
  facts.visible_devices = runtime::cuda_visible_devices();
  const SharedLibrary driver({facts.driver.file}), nvml({facts.nvml.file});
  facts.driver = facts_of(driver, facts.driver);
  facts.nvml = facts_of(nvml, facts.nvml);
  ask_driver(driver, facts);
  ask_nvml(nvml, facts);
  const int major = facts.build.runtime_version / 1000;
  const bool built = facts.build.has_cuda();
  facts.cudart = find_cudart(facts.cudart, major);
  facts.cublas = find_cublas(major);
  facts.cudnn = find_cudnn(built ? facts.build.cudnn_major : 0);
  facts.nccl = find_nccl(facts.nccl, built ? facts.build.nccl_major : 0);
  return facts;
}

LibraryFacts find_cublas(int major) {
  const SharedLibrary library(files_of("libcublasLt", major, {13, 12, 11}));
  LibraryFacts facts = facts_of(library, {.name = "cuBLAS"});
  auto* get = library.function<int(int property, int* value)>("cublasLtGetProperty");
  int parts[3] = {};
  for (int i = 0; get && i < 3; ++i) get(i, &parts[i]);
  if (get) set_version(facts, parts[0], parts[1], parts[2]);
  return facts;
}

LibraryFacts find_cudnn(int major) {
  const SharedLibrary library(files_of("libcudnn", major, {9, 8}));
  LibraryFacts facts = facts_of(library, {.name = "cuDNN"});
  if (auto* get = library.function<size_t()>("cudnnGetVersion")) {
    const int v = static_cast<int>(get());  // 90100 is 9.1.0; 8907 is 8.9.7
    const int unit = v >= 10000 ? 10000 : 1000;
    set_version(facts, v / unit, v % unit / 100, v % 100);
  }
  return facts;
}

std::string cuda_version_text(int version) { return str(version / 1000, ".", version % 1000 / 10); }

}  // namespace gradus
