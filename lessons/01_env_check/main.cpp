// Lesson 01: what this machine has.
//
// You will learn to ask for a GPU in the right order, which versions must fit together, how much memory each
// device has, and, where no GPU can be used, why and what to do. At the end: which lessons run here.
//
// Run: ./gradus learn 01          or: build/release/lessons/01_env_check --json
#include <gradus/gradus.h>

#include <cstdio>
#include <sstream>

#include "../common/app.h"

using namespace gradus;

// [snippet gpu]
// The count comes first: where there is no GPU, its index and its name are an error.
void gpu() {
  lesson::section(1, "Is there a GPU?");
  const int count = device_count(DeviceType::cuda);
  std::printf("CUDA available: %s\n", is_available(DeviceType::cuda) ? "yes" : "no");
  std::printf("GPU count: %d\n", count);
  lesson::result("gpu_count", count);
  if (count > 0) {
    std::printf("current GPU: %d\n", current_device(DeviceType::cuda).index());
    std::printf("GPU name: %s\n", get_device_name("cuda").c_str());
    return;
  }
  try {
    get_device_name("cuda");  // what a check that does not count first runs into
  } catch (const Error& error) {
    std::printf("GPU name: %s\n", error.what());
  }
}
// [/snippet gpu]

// [snippet versions]
std::string or_none(const std::string& text) { return text.empty() ? "none" : text; }

// Two numbers are called "the CUDA version": the newest that the driver knows, and the one this program was
// built with. The first must not be of an older major version.
void versions(const Environment& here) {
  lesson::section(2, "Versions");
  const CudaFacts& cuda = here.cuda;
  auto version = [](int number) { return number > 0 ? cuda_version_text(number) : "none"; };
  std::printf("Gradus: %s, %s, %s\n", here.build.version.c_str(), here.build.type.c_str(),
              here.build.compiler.c_str());
  std::printf("built with CUDA: %s\n", version(cuda.build.runtime_version).c_str());
  std::printf("driver knows CUDA up to: %s\n", version(cuda.driver_version).c_str());
  std::printf("driver: %s\n", or_none(cuda.driver_release).c_str());
  std::printf("oneDNN: %s\n", here.build.onednn.c_str());
  std::printf("system: %s, %s\n", here.host.os.c_str(), here.host.kernel.c_str());
}
// [/snippet versions]

// [snippet devices]
bool usable(DeviceType type) { return unavailable_reason(type).empty(); }

void print_device(const std::string& device, const std::string& name, size_t total, size_t free) {
  std::printf("%-6s  %s: %s, %s free\n", device.c_str(), name.c_str(),
              format_bytes(static_cast<int64_t>(total)).c_str(),
              format_bytes(static_cast<int64_t>(free)).c_str());
}

void devices(const Environment& here) {
  lesson::section(3, "Devices and their memory");
  for (const DeviceFacts& d : here.devices)
    print_device(to_string(d.device), d.properties.name, d.memory.total, d.memory.free);
  for (const DeviceType type : {DeviceType::sim, DeviceType::cuda})
    if (!usable(type)) std::printf("%-6s  none: %s\n", to_string(type), unavailable_reason(type).c_str());
  if (usable(DeviceType::cuda)) return;
  for (const GpuFacts& gpu : here.cuda.devices)  // which the driver has and this program cannot use
    print_device("(GPU)", gpu.name, gpu.total_memory, gpu.free_memory);
}
// [/snippet devices]

// [snippet libraries]
void libraries(const CudaFacts& cuda) {
  lesson::section(4, "CUDA's libraries, as the loader finds them");
  for (const LibraryFacts* l :
       {&cuda.driver, &cuda.nvml, &cuda.cudart, &cuda.cublas, &cuda.cudnn, &cuda.nccl}) {
    if (l->found())
      std::printf("%-13s %-10s %s\n", l->name.c_str(), or_none(l->version).c_str(), l->path.c_str());
    else
      std::printf("%-13s %-10s %s\n", l->name.c_str(), l->error.empty() ? "not found" : "damaged",
                  (l->error.empty() ? l->file : l->error).c_str());
  }
}
// [/snippet libraries]

// [snippet doctor]
void doctor(const CudaFacts& cuda) {
  lesson::section(5, "The doctor: can CUDA be used, and if not, why?");
  const auto findings = diagnose(cuda);
  std::printf("CUDA can%s be used here\n", is_usable(findings) ? "" : "not");
  for (const Finding& finding : findings) std::printf("%s\n", to_string(finding).c_str());
}
// [/snippet doctor]

// [snippet lessons]
// "yes"; "less" where what the lesson shows needs a device with memory of its own; else "no".
const char* runs_on(const std::string& lesson, DeviceType type) {
  if (!usable(type)) return "no";
  return lesson.starts_with("02") && type == DeviceType::cpu ? "less" : "yes";
}

void lessons() {
  lesson::section(6, "Which lessons run here");
  std::printf("%-20s  %-5s %-5s %s\n", "", "cpu", "sim", "cuda");
  std::istringstream names(GRADUS_LESSONS);
  for (std::string name; std::getline(names, name, ',');)
    std::printf("%-20s  %-5s %-5s %s\n", name.c_str(), runs_on(name, DeviceType::cpu),
                runs_on(name, DeviceType::sim), runs_on(name, DeviceType::cuda));
  if (!usable(DeviceType::cuda)) std::printf("no cuda: see 5\n");
  try {
    std::printf("lesson 04 finds its images in %s\n", find_image_data().c_str());
  } catch (const Error& error) {
    std::printf("lesson 04 has no images: %s\n", error.hint().c_str());
  }
  std::printf("--device auto takes: %s\n", to_string(select_device("auto")).c_str());
}
// [/snippet lessons]

int main(int argc, char** argv) {
  lesson::Flags flags;
  return lesson::run(argc, argv, "Lesson 01: what this machine has", flags, [&] {
    const Environment here = gather_environment();
    gpu();
    versions(here);
    devices(here);
    libraries(here.cuda);
    doctor(here.cuda);
    lessons();
    select_device(flags.device);  // a device that was asked for must be there
  });
}
