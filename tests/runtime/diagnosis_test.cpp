// Every cause injected into the facts of a machine on which CUDA works, and its text compared whole.
#include <gmock/gmock.h>
#include <gradus/base/error.h>
#include <gradus/runtime/diagnosis.h>

#include "support/cuda_facts.h"

namespace gradus {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::working_cuda;

// The findings, each as one text.
std::vector<std::string> said(const CudaFacts& facts) {
  std::vector<std::string> texts;
  for (const Finding& finding : diagnose(facts)) texts.push_back(to_string(finding));
  return texts;
}

CudaFacts with_versions(int driver, int runtime) {
  CudaFacts facts = working_cuda();
  facts.driver_version = driver;
  facts.build.runtime_version = runtime;
  const int major = runtime / 1000;
  facts.cublas = testing::library("cuBLAS", "libcublas.so", "", major);
  return facts;
}

// As a driver that cannot start: no devices.
CudaFacts with_init_error(int error, const char* name) {
  CudaFacts facts = working_cuda();
  facts.init_error = error, facts.init_error_name = name;
  facts.devices.clear();
  return facts;
}

CudaFacts hidden_by(const char* variable, int machine) {
  CudaFacts facts = with_init_error(100, "CUDA_ERROR_NO_DEVICE");
  facts.visible_devices = variable;
  facts.physical_count = machine;
  facts.physical_uuids.clear();
  return facts;
}

const std::string kHiddenHint =
    "\n  hint: unset CUDA_VISIBLE_DEVICES, or list indices from 0 as nvidia-smi -L shows them; it is read "
    "when "
    "the program starts";

TEST(Diagnosis, nothing_to_say_where_cuda_works) {
  EXPECT_THAT(said(working_cuda()), IsEmpty());
  EXPECT_TRUE(is_usable(diagnose(working_cuda())));
}

TEST(Diagnosis, built_without_cuda) {
  CudaFacts facts = working_cuda();
  facts.build = {.without = WithoutCuda::switched_off};
  EXPECT_THAT(said(facts),
              ElementsAre("blocking E-CUDA-BUILD: this Gradus was built without CUDA: GRADUS_CUDA=OFF\n"
                          "  hint: ./gradus learn --cuda builds with CUDA"));
  EXPECT_FALSE(is_usable(diagnose(facts)));
  facts.build = {.without = WithoutCuda::no_compiler};
  EXPECT_THAT(
      said(facts),
      ElementsAre("blocking E-CUDA-BUILD: this Gradus was built without CUDA: no CUDA compiler (nvcc 12.4 "
                  "or newer) was found\n  hint: ./gradus setup --cuda installs one; then ./gradus learn "
                  "--cuda builds with CUDA"));
  facts.build = {.without = WithoutCuda::not_in_this_version};
  EXPECT_THAT(
      said(facts),
      ElementsAre("blocking E-CUDA-BUILD: this Gradus was built without CUDA: this version has no CUDA "
                  "backend\n  hint: use cpu or sim; a later version brings it"));
}

TEST(Diagnosis, no_libcuda) {
  CudaFacts facts = working_cuda();
  facts.driver = CudaFacts().driver;
  facts.devices.clear();
  EXPECT_THAT(
      said(facts),
      ElementsAre("blocking E-CUDA-NO-DRIVER: libcuda.so.1, the NVIDIA driver's library, was not found\n"
                  "  hint: without an NVIDIA GPU nothing is amiss: use cpu or sim. With one, install its "
                  "driver; a container must be started with the GPU (docker run --gpus all)"));
}

TEST(Diagnosis, a_machine_without_anything) {
  CudaFacts facts;
  const auto findings = diagnose(facts);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].code, "E-CUDA-NO-DRIVER");
  EXPECT_EQ(findings[1].code, "E-CUDA-BUILD");
}

TEST(Diagnosis, a_driver_library_that_cannot_be_loaded) {
  CudaFacts facts = working_cuda();
  facts.driver = CudaFacts().driver;
  facts.driver.error = "libcuda.so.1: file too short";
  facts.devices.clear();
  EXPECT_THAT(said(facts),
              ElementsAre("blocking E-CUDA-DRIVER-BROKEN: the NVIDIA driver's library is there but "
                          "cannot be loaded: libcuda.so.1: file too short\n  hint: reinstall the driver; "
                          "a file on LD_LIBRARY_PATH hides the driver's own"));
}

// The pairs (driver, runtime) of the case.
TEST(Diagnosis, ENV_01_a_newer_driver_is_fine) {
  EXPECT_THAT(said(with_versions(12020, 11080)), IsEmpty());
  EXPECT_THAT(said(with_versions(13000, 12080)), IsEmpty());
  EXPECT_THAT(said(with_versions(12080, 12080)), IsEmpty());
}

TEST(Diagnosis, ENV_01_an_older_driver_of_the_same_major_works_but_for_ptx) {
  const CudaFacts facts = with_versions(12020, 12080);
  EXPECT_THAT(
      said(facts),
      ElementsAre(
          "note N-CUDA-MINOR: the driver supports CUDA up to 12.2, this build was made with 12.8: that "
          "works, but PTX needs a newer driver\n  hint: nothing to do, unless a GPU is newer than all "
          "kernels of this build; then update the driver"));
  EXPECT_TRUE(is_usable(diagnose(facts)));
}

TEST(Diagnosis, ENV_01_across_major_versions_the_driver_is_too_old) {
  EXPECT_THAT(
      said(with_versions(12090, 13000)),
      ElementsAre("blocking E-CUDA-DRIVER-OLD: CUDA driver version is insufficient for CUDA runtime version: "
                  "the driver supports CUDA up to 12.9, this build needs 13.0\n  hint: install an NVIDIA "
                  "driver for CUDA 13 (580 or newer), or build with a CUDA toolkit 12.x"));
  EXPECT_THAT(
      said(with_versions(10020, 11080)),
      ElementsAre("blocking E-CUDA-DRIVER-OLD: CUDA driver version is insufficient for CUDA runtime version: "
                  "the driver supports CUDA up to 10.2, this build needs 11.8\n  hint: install an NVIDIA "
                  "driver for CUDA 11 (450 or newer), or build with a CUDA toolkit 10.x"));
}

TEST(Diagnosis, ENV_01_no_driver_at_all) {
  CudaFacts facts = with_versions(0, 12080);
  facts.driver = CudaFacts().driver;
  const auto findings = diagnose(facts);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].code, "E-CUDA-NO-DRIVER");
}

TEST(Diagnosis, PTX_alone_needs_a_driver_as_new_as_the_toolkit) {
  CudaFacts facts = with_versions(12020, 12080);
  facts.devices[0] = {.name = "NVIDIA B200", .capability_major = 10};
  ASSERT_EQ(said(facts).size(), 2u);
  EXPECT_EQ(said(facts)[1],
            "blocking E-CUDA-PTX: the provided PTX was compiled with an unsupported toolchain: device 0 "
            "(NVIDIA B200, "
            "capability 10.0) needs this build's PTX of CUDA 12.8, the driver knows 12.2\n  hint: update the "
            "driver, "
            "or build for it: cmake -DGRADUS_CUDA_ARCHS=100");
  facts.driver_version = 12080;
  EXPECT_THAT(said(facts), IsEmpty());
}

TEST(Diagnosis, no_device) {
  CudaFacts facts = with_init_error(100, "CUDA_ERROR_NO_DEVICE");
  facts.physical_count = 0;
  const std::string text =
      "blocking E-CUDA-NO-DEVICE: the driver is there, but it finds no device\n  hint: nvidia-smi and lspci "
      "tell "
      "whether the system sees a GPU; a container must be started with it (docker run --gpus all)";
  EXPECT_THAT(said(facts), ElementsAre(text));
  facts.visible_devices = "0";  // hides nothing where there is nothing
  EXPECT_THAT(said(facts), ElementsAre(text));
  facts.init_error = 0;  // cuInit() succeeds and the count is 0
  EXPECT_THAT(said(facts), ElementsAre(text));
}

TEST(Diagnosis, ENV_03_all_hidden) {
  EXPECT_THAT(
      said(hidden_by("", 4)),
      ElementsAre("blocking E-CUDA-HIDDEN: CUDA_VISIBLE_DEVICES='' hides all 4 devices" + kHiddenHint));
  EXPECT_THAT(
      said(hidden_by("2", 1)),
      ElementsAre("blocking E-CUDA-HIDDEN: CUDA_VISIBLE_DEVICES='2' hides the one device: there is no device "
                  "'2'" +
                  kHiddenHint));
  EXPECT_THAT(
      said(hidden_by("1,1", 4)),
      ElementsAre("blocking E-CUDA-HIDDEN: CUDA_VISIBLE_DEVICES='1,1' hides all 4 devices: it names device 1 "
                  "twice" +
                  kHiddenHint));
}

TEST(Diagnosis, ENV_03_hidden_though_the_text_does_not_say_so) {
  const std::string text =
      "blocking E-CUDA-HIDDEN: no device is visible, and CUDA_VISIBLE_DEVICES='0' is set";
  EXPECT_THAT(said(hidden_by("0", -1)), ElementsAre(text + kHiddenHint));  // without NVML nobody knows
  EXPECT_THAT(said(hidden_by("0", 2)), ElementsAre(text + kHiddenHint));
}

TEST(Diagnosis, ENV_03_a_list_cut_short_is_noted) {
  CudaFacts facts = working_cuda();
  facts.devices = {facts.devices[0], facts.devices[0]};
  facts.physical_count = 4;
  facts.visible_devices = "0,2,-1,1";
  EXPECT_THAT(said(facts),
              ElementsAre("note N-CUDA-LIST: CUDA_VISIBLE_DEVICES='0,2,-1,1' shows 2 of 4 devices: it "
                          "ends at '-1', which is none\n  hint: list indices from 0 as nvidia-smi -L "
                          "shows them, each once"));
  facts.visible_devices = "MIG-1,MIG-2";  // what this parser does not know, the driver does
  EXPECT_THAT(said(facts), IsEmpty());
  facts.visible_devices = "0,3";
  EXPECT_THAT(said(facts), IsEmpty());
}

TEST(Diagnosis, errors_of_cuInit) {
  EXPECT_THAT(
      said(with_init_error(803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH")),
      ElementsAre("blocking E-CUDA-INIT: cuInit fails with error 803 (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)\n"
                  "  hint: the driver was updated while its kernel module stayed loaded: restart the "
                  "machine"));
  EXPECT_THAT(
      said(with_init_error(804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE")),
      ElementsAre(
          "blocking E-CUDA-INIT: cuInit fails with error 804 "
          "(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE)\n  hint: CUDA's compatibility package does not "
          "serve this GPU: remove it (cuda-compat), update the driver"));
  EXPECT_THAT(
      said(with_init_error(999, "")),
      ElementsAre("blocking E-CUDA-INIT: cuInit fails with error 999\n  hint: see what nvidia-smi says; "
                  "restarting the machine, or loading the module nvidia-uvm, often helps"));
  CudaFacts stub = with_init_error(34, "CUDA_ERROR_STUB_LIBRARY");
  stub.driver_version = 0;  // a stub tells none
  EXPECT_THAT(
      said(stub),
      ElementsAre(
          "blocking E-CUDA-INIT: cuInit fails with error 34 (CUDA_ERROR_STUB_LIBRARY)\n  hint: a stub "
          "that is only for linking was loaded: take the folder 'stubs' off LD_LIBRARY_PATH"));
}

TEST(Diagnosis, a_library_is_missing) {
  CudaFacts facts = working_cuda();
  facts.cudnn = {.name = "cuDNN", .file = "libcudnn.so.9"};
  EXPECT_THAT(
      said(facts),
      ElementsAre(
          "blocking E-CUDNN-MISSING: cuDNN 9 is missing: libcudnn.so.9: cannot open shared object file; "
          "without it there is no convolution\n  hint: install cuDNN 9 (./gradus setup --cuda does), "
          "or put its folder on LD_LIBRARY_PATH"));
  facts.cudnn.error = "libcudnn_graph.so.9: cannot open shared object file: No such file or directory";
  EXPECT_THAT(
      said(facts),
      ElementsAre(
          "blocking E-CUDNN-MISSING: cuDNN 9 is missing: libcudnn_graph.so.9: cannot open shared object "
          "file: No such file or directory; without it there is no convolution\n  hint: install cuDNN "
          "9 (./gradus setup --cuda does), or put its folder on LD_LIBRARY_PATH"));
  facts = working_cuda();
  facts.nccl = {.name = "NCCL", .file = "libnccl.so.2"};
  EXPECT_THAT(
      said(facts),
      ElementsAre("warning E-NCCL-MISSING: NCCL 2 is missing: libnccl.so.2: cannot open shared object file; "
                  "without it several GPUs cannot work together\n  hint: install NCCL 2 (./gradus setup "
                  "--cuda does), or put its folder on LD_LIBRARY_PATH"));
  EXPECT_TRUE(is_usable(diagnose(facts)));  // one GPU needs none
  facts = working_cuda();
  facts.cublas = {.name = "cuBLAS", .file = "libcublasLt.so.12"};
  EXPECT_EQ(diagnose(facts).at(0).code, "E-CUBLAS-MISSING");
  EXPECT_FALSE(is_usable(diagnose(facts)));
}

TEST(Diagnosis, a_library_of_another_major_version) {
  CudaFacts facts = working_cuda();
  facts.cudnn = testing::library("cuDNN", "libcudnn.so.8", "8.9.7", 8);
  EXPECT_THAT(
      said(facts),
      ElementsAre(
          "blocking E-CUDNN-VERSION: this build needs cuDNN 9, found 8.9.7 at "
          "/usr/lib/x86_64-linux-gnu/libcudnn.so.8; without it there is no convolution\n  hint: install "
          "cuDNN 9 (./gradus setup --cuda does), or put its folder on LD_LIBRARY_PATH"));
  facts = working_cuda();
  facts.nccl = testing::library("NCCL", "libnccl.so.2", "3.0.1", 3);
  EXPECT_THAT(
      said(facts),
      ElementsAre("warning E-NCCL-VERSION: this build needs NCCL 2, found 3.0.1 at "
                  "/usr/lib/x86_64-linux-gnu/libnccl.so.2; without it several GPUs cannot work together\n"
                  "  hint: install NCCL 2 (./gradus setup --cuda does), or put its folder on "
                  "LD_LIBRARY_PATH"));
}

TEST(Diagnosis, no_kernels_for_this_gpu) {
  CudaFacts facts = working_cuda();
  facts.devices.push_back({.name = "Tesla V100", .capability_major = 7});
  facts.physical_count = 2;
  EXPECT_THAT(
      said(facts),
      ElementsAre("blocking E-CUDA-ARCH: no kernel image is available for execution on the device: device 1 "
                  "(Tesla V100, capability 7.0), this build has kernels for sm_80, sm_90 and PTX of "
                  "compute_90\n  hint: build for it: cmake -DGRADUS_CUDA_ARCHS=70"));
}

TEST(Diagnosis, several_causes_are_listed_together) {
  CudaFacts facts = hidden_by("", 1);
  facts.cudnn = {.name = "cuDNN", .file = "libcudnn.so.9"};
  facts.nccl = {.name = "NCCL", .file = "libnccl.so.2"};
  std::vector<std::string> codes;
  for (const Finding& finding : diagnose(facts)) codes.push_back(finding.code);
  EXPECT_THAT(codes, ElementsAre("E-CUDA-HIDDEN", "E-CUDNN-MISSING", "E-NCCL-MISSING"));
}

}  // namespace
}  // namespace gradus
