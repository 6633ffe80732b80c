// Lesson 01, part 2: the doctor at other machines.
//
// You will learn what each cause of "no GPU" looks like, and its remedy, without breaking your machine: the
// doctor judges a list of facts, so this program hands it made-up ones.
//
// Run: ./gradus learn 01          or: build/release/lessons/01_env_check_causes
#include <gradus/gradus.h>

#include <cstdio>

#include "../common/app.h"

using namespace gradus;

int machine = 0;  // the section's number

void visit(const char* title, const CudaFacts& facts) {
  lesson::section(++machine, title);
  const auto findings = diagnose(facts);
  std::printf("CUDA can%s be used\n", is_usable(findings) ? "" : "not");
  for (const Finding& finding : findings) std::printf("%s\n", to_string(finding).c_str());
}

// [snippet healthy]
LibraryFacts library(const std::string& name, const std::string& file, const std::string& version,
                     int major) {
  return {.name = name, .file = file, .path = "/usr/lib/" + file, .version = version, .major = major};
}

// One H100, a driver that knows CUDA 12.9, a build with CUDA 12.8 for capabilities 8.0 and 9.0.
CudaFacts healthy() {
  CudaFacts facts;
  facts.build = {.without = WithoutCuda::has_it, .runtime_version = 12080, .architectures = "80-real;90"};
  facts.driver = library("driver", "libcuda.so.1", "12.9", 12);
  facts.driver_version = 12090;
  facts.cublas = library("cuBLAS", "libcublasLt.so.12", "12.8.4", 12);
  facts.cudnn = library("cuDNN", "libcudnn.so.9", "9.8.0", 9);
  facts.nccl = library("NCCL", "libnccl.so.2", "2.26.2", 2);
  facts.devices = {{.name = "NVIDIA H100", .capability_major = 9}};
  facts.physical_count = 1;
  return facts;
}
// [/snippet healthy]

// [snippet driver]
void drivers() {
  CudaFacts facts = healthy();
  visit("All is well", facts);

  facts.driver_version = 12020;
  visit("A driver somewhat older than the build: 12.2 and 12.8", facts);

  facts.driver_version = 11080;
  visit("A driver too old: 11.8 and 12.8", facts);

  facts = healthy();
  facts.driver = CudaFacts().driver;
  visit("No driver", facts);

  facts.driver.error = "libcuda.so.1: file too short";
  visit("A driver's library that is damaged", facts);

  facts = healthy();
  facts.init_error = 803, facts.init_error_name = "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH";
  visit("A driver that was updated while it ran", facts);
}
// [/snippet driver]

// [snippet device]
void no_devices() {
  CudaFacts facts = healthy();
  facts.devices.clear();
  facts.physical_count = 0;
  visit("A driver, but no GPU", facts);

  facts.physical_count = 4;
  facts.visible_devices = "4";
  visit("Four GPUs, and CUDA_VISIBLE_DEVICES=4", facts);

  facts.devices = {healthy().devices[0], healthy().devices[0]};
  facts.visible_devices = "0,2,-1,1";
  visit("Four GPUs, and CUDA_VISIBLE_DEVICES=0,2,-1,1", facts);
}
// [/snippet device]

// [snippet build]
void builds() {
  CudaFacts facts = healthy();
  facts.build = {.without = WithoutCuda::switched_off};
  visit("A GPU, and a program built without CUDA", facts);

  facts = healthy();
  facts.cudnn = {.name = "cuDNN", .file = "libcudnn.so.9"};
  facts.nccl = {.name = "NCCL", .file = "libnccl.so.2"};
  visit("No cuDNN and no NCCL", facts);

  facts.cudnn = library("cuDNN", "libcudnn.so.8", "8.9.7", 8);
  facts.nccl = healthy().nccl;
  visit("Another cuDNN than the build's", facts);

  facts = healthy();
  facts.devices = {{.name = "Tesla V100", .capability_major = 7}};
  visit("A GPU older than all kernels of the build", facts);
}
// [/snippet build]

// [snippet visible]
void visible_devices() {
  lesson::section(++machine, "Which of 4 devices CUDA_VISIBLE_DEVICES shows");
  for (const char* text : {"", "2", "3,0", "0,2,-1,1", "1,1", "7"}) {
    const auto visible = runtime::parse_visible_devices(text, 4);
    std::string devices = visible.devices.empty() ? " none" : "";
    for (const int device : visible.devices) devices += str(" ", device);
    std::printf("'%s':%s\n", text, devices.c_str());
  }
}
// [/snippet visible]

int main(int argc, char** argv) {
  lesson::Flags flags;
  return lesson::run(argc, argv, "Lesson 01, part 2: the doctor at other machines", flags, [&] {
    drivers();
    no_devices();
    builds();
    visible_devices();
    lesson::result("machines", machine - 1);
    std::printf("\nmachines: %d\n", machine - 1);
  });
}
