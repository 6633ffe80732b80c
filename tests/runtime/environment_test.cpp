#include <gmock/gmock.h>
#include <gradus/base/version.h>
#include <gradus/runtime/backend.h>
#include <gradus/runtime/environment.h>

#include <chrono>
#include <cstdlib>

namespace gradus {
namespace {

using ::testing::MatchesRegex;

TEST(Environment, the_build) {
  const BuildFacts build = gather_environment().build;
  EXPECT_EQ(build.version, GRADUS_VERSION);
  EXPECT_EQ(build.type, GRADUS_BUILD_TYPE);
  EXPECT_EQ(build.sanitizer, GRADUS_SANITIZER);
  EXPECT_THAT(build.compiler, MatchesRegex("(g\\+\\+|clang) [0-9]+\\.[0-9]+\\.[0-9]+"));
  EXPECT_THAT(build.onednn, MatchesRegex("[23]\\.[0-9]+\\.[0-9]+"));
}

TEST(Environment, the_host) {
  const HostFacts host = gather_environment().host;
  EXPECT_EQ(host.cpu, get_device_name("cpu"));
  EXPECT_GE(host.cores, 1);
  EXPECT_THAT(host.vector_units, MatchesRegex("([a-z0-9_]+( [a-z0-9_]+)*)?"));
#ifdef __AVX2__  // the tests are compiled for this machine
  EXPECT_THAT(host.vector_units, ::testing::HasSubstr("avx2"));
#endif
  EXPECT_THAT(host.kernel, ::testing::StartsWith("Linux "));
  EXPECT_FALSE(host.os.empty());
  EXPECT_EQ(host.os.find('"'), std::string::npos);
  EXPECT_GT(host.free_memory, 0u);
  EXPECT_LE(host.free_memory, host.total_memory);
  EXPECT_GE(host.load, 0);
}

TEST(Environment, every_device_that_can_be_used) {
  const Environment environment = gather_environment();
  size_t count = 0;
  for (const DeviceType type : {DeviceType::cpu, DeviceType::sim, DeviceType::cuda})
    count += static_cast<size_t>(device_count(type));
  ASSERT_EQ(environment.devices.size(), count);
  EXPECT_EQ(environment.devices[0].device, Device("cpu"));
  for (const DeviceFacts& facts : environment.devices) {
    EXPECT_EQ(facts.properties.name, get_device_name(facts.device));
    EXPECT_EQ(facts.memory.total, mem_get_info(facts.device).total);
    EXPECT_LE(facts.memory.free, facts.memory.total);
  }
}

TEST(Environment, why_a_type_of_device_cannot_be_used) {
  EXPECT_EQ(unavailable_reason(DeviceType::cpu), "");
  for (const DeviceType type : {DeviceType::sim, DeviceType::cuda}) {
    const std::string reason = unavailable_reason(type);
    EXPECT_EQ(reason.empty(), device_count(type) > 0) << reason;
    if (!runtime::find_backend(type)) {
      EXPECT_EQ(reason, std::string("this build has no ") + to_string(type) + " backend");
    }
  }
}

TEST(Environment, of_cuda_every_library_has_a_name_and_a_file) {
  const CudaFacts cuda = gather_cuda_facts();
  for (const LibraryFacts* library :
       {&cuda.driver, &cuda.nvml, &cuda.cudart, &cuda.cublas, &cuda.cudnn, &cuda.nccl}) {
    SCOPED_TRACE(library->name);
    EXPECT_FALSE(library->name.empty());
    EXPECT_THAT(library->file, ::testing::StartsWith("lib"));
    EXPECT_TRUE(library->error.empty() || !library->found());
    if (library->found() && library != &cuda.nvml) {
      EXPECT_FALSE(library->version.empty()) << library->path;
    }
  }
  EXPECT_EQ(cuda.driver_version > 0, cuda.driver.major > 0);
  EXPECT_TRUE(cuda.driver.found() || cuda.devices.empty());
  EXPECT_EQ(cuda.build.has_cuda(), runtime::find_backend(DeviceType::cuda) != nullptr);
}

TEST(Environment, cuda_versions_as_text) {
  EXPECT_EQ(cuda_version_text(12020), "12.2");
  EXPECT_EQ(cuda_version_text(11080), "11.8");
  EXPECT_EQ(cuda_version_text(13000), "13.0");
}

}  // namespace
}  // namespace gradus
