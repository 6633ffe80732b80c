#include <gradus/io/environment_json.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "support/cuda_facts.h"

namespace gradus {
namespace {

using Json = nlohmann::json;

Environment example() {
  return {.build = {.version = "0.1.0",
                    .type = "Release",
                    .sanitizer = "",
                    .compiler = "g++ 12.2.0",
                    .onednn = "2.6.3",
                    .openmp = "201511"},
          .host = {.cpu = "Some CPU",
                   .os = "Debian GNU/Linux 12 (bookworm)",
                   .kernel = "Linux 6.1.0 x86_64",
                   .governor = "",
                   .vector_units = "avx2 avx512f",
                   .cores = 2,
                   .total_memory = size_t{24} << 30,
                   .free_memory = size_t{20} << 30,
                   .load = 0.25},
          .devices = {{Device("cpu"),
                       {.name = "Some CPU", .multiprocessors = 2},
                       {size_t{20} << 30, size_t{24} << 30}},
                      {Device("sim:1"), {.name = "SIMULATED", .multiprocessors = 2}, {100, 200}}},
          .cuda = testing::working_cuda()};
}

TEST(EnvironmentJson, the_whole_record) {
  Environment e = example();
  e.cuda.visible_devices = "0";
  e.cuda.nccl = {.name = "NCCL", .file = "libnccl.so.2"};
  const auto library = [](const char* file, const char* version) {
    return Json{{"file", file},
                {"path", std::string("/usr/lib/x86_64-linux-gnu/") + file},
                {"version", version},
                {"error", nullptr}};
  };
  const Json libraries = {
      {"driver", library("libcuda.so.1", "12.9")},
      {"NVML", library("libnvidia-ml.so.1", "575.51.03")},
      {"CUDA runtime", library("libcudart.so.12", "12.8")},
      {"cuBLAS", library("libcublasLt.so.12", "12.8.4")},
      {"cuDNN", library("libcudnn.so.9", "9.8.0")},
      {"NCCL", {{"file", "libnccl.so.2"}, {"path", nullptr}, {"version", nullptr}, {"error", nullptr}}}};
  const Json expected = {
      {"gradus",
       {{"version", "0.1.0"},
        {"build_type", "Release"},
        {"sanitizer", nullptr},
        {"compiler", "g++ 12.2.0"},
        {"onednn", "2.6.3"},
        {"openmp", "201511"}}},
      {"host",
       {{"cpu", "Some CPU"},
        {"vector_units", "avx2 avx512f"},
        {"cores", 2},
        {"memory_total", 25769803776},
        {"memory_free", 21474836480},
        {"os", "Debian GNU/Linux 12 (bookworm)"},
        {"kernel", "Linux 6.1.0 x86_64"},
        {"governor", nullptr},
        {"load", 0.25}}},
      {"devices",
       {{{"device", "cpu"},
         {"name", "Some CPU"},
         {"simulated", false},
         {"memory_total", 25769803776},
         {"memory_free", 21474836480},
         {"multiprocessors", 2},
         {"capability", nullptr}},
        {{"device", "sim:1"},
         {"name", "SIMULATED"},
         {"simulated", true},
         {"memory_total", 200},
         {"memory_free", 100},
         {"multiprocessors", 2},
         {"capability", nullptr}}}},
      {"cuda",
       {{"usable", true},
        {"built_with", "12.8"},
        {"built_for", "80-real;90"},
        {"driver_supports", "12.9"},
        {"driver_release", "575.51.03"},
        {"cuda_visible_devices", "0"},
        {"gpus_in_machine", 1},
        {"gpus", Json::array({{{"name", "NVIDIA H100"},
                               {"capability", "9.0"},
                               {"memory_total", 85899345920},
                               {"memory_free", 84825604096}}})},
        {"libraries", libraries},
        {"findings",
         Json::array(
             {{{"code", "E-NCCL-MISSING"},
               {"severity", "warning"},
               {"cause",
                "NCCL 2 is missing: libnccl.so.2: cannot open shared object file; without it several GPUs "
                "cannot work together"},
               {"remedy",
                "install NCCL 2 (./gradus setup --cuda does), or put its folder on LD_LIBRARY_PATH"}}})}}}};
  EXPECT_EQ(Json::parse(environment_json(e)), expected);
}

TEST(EnvironmentJson, what_is_unknown_is_null) {
  Environment e = example();
  e.cuda = {};
  const Json cuda = Json::parse(environment_json(e))["cuda"];
  EXPECT_EQ(cuda["usable"], false);
  for (const char* key : {"built_with", "built_for", "driver_supports", "driver_release",
                          "cuda_visible_devices", "gpus_in_machine"})
    EXPECT_TRUE(cuda[key].is_null()) << key;
  EXPECT_EQ(cuda["gpus"], Json::array());
  EXPECT_EQ(cuda["findings"].size(), 2u);
}

TEST(EnvironmentJson, one_line_whatever_the_texts_are) {
  Environment e = example();
  e.cuda.visible_devices = "\xff\n\"";  // no UTF-8, and characters that JSON escapes
  const std::string text = environment_json(e);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_EQ(Json::parse(text)["cuda"]["cuda_visible_devices"], "\xef\xbf\xbd\n\"");
}

TEST(EnvironmentJson, names_no_home_directory) {
  Environment e = example();
  const std::string home = std::getenv("HOME") ? std::getenv("HOME") : "";
  setenv("HOME", "/home/ada", 1);
  e.cuda.cudnn.path = "/home/ada/venv/lib/libcudnn.so.9";
  e.cuda.nccl.path = "/home/adam/libnccl.so.2";
  const Json libraries = Json::parse(environment_json(e))["cuda"]["libraries"];
  setenv("HOME", home.c_str(), 1);
  EXPECT_EQ(libraries["cuDNN"]["path"], "~/venv/lib/libcudnn.so.9");
  EXPECT_EQ(libraries["NCCL"]["path"], "/home/adam/libnccl.so.2");
}

TEST(EnvironmentJson, of_this_machine) {
  const Json record = Json::parse(environment_json(gather_environment()));
  EXPECT_EQ(record["devices"][0]["device"], "cpu");
  EXPECT_EQ(record["cuda"]["libraries"].size(), 6u);
}

}  // namespace
}  // namespace gradus
