// What the backend says when CUDA fails: with injected errors, so that each happens without its cause.
#include <cuda_on_host/runtime.h>
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gradus/gradus.h>
#include <gradus/runtime/backend.h>
#include <support/expect_error.h>

namespace gradus {
namespace {

using cuda_on_host::fail_next;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class CudaFaults : public ::testing::Test {
 protected:
  ~CudaFaults() override { gradus_cuda_on_host_forget_errors(); }
  const Device device_{DeviceType::cuda, 0};
};

TEST_F(CudaFaults, an_error_names_the_call_the_error_and_the_device) {
  fail_next("cudaStreamCreateWithFlags", cudaErrorInvalidConfiguration);
  EXPECT_EQ(
      error_of([&] { Stream::create(device_); }).substr(0, 200),
      "E-CUDA: cudaStreamCreateWithFlags(&handle, blocking ? cudaStreamDefault : "
      "cudaStreamNonBlocking): invalid configuration argument (cudaErrorInvalidConfiguration) on cuda:0");
}

TEST_F(CudaFaults, an_error_that_does_not_stick_is_reported_once) {
  fail_next("cudaStreamCreateWithFlags", cudaErrorInvalidConfiguration);
  EXPECT_NE(error_of([&] { Stream::create(device_); }), "");
  EXPECT_EQ(error_of([&] { Stream::create(device_); }), "");
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);  // nothing is left for a launch to report as its own
}

TEST_F(CudaFaults, out_of_memory_empties_the_cache_and_tries_again) {
  { const Tensor cached = empty({1 << 22}, kFloat32, device_); }
  fail_next("cudaMalloc", cudaErrorMemoryAllocation);
  const int64_t retries = memory_stats(device_).retries;
  const Tensor x = empty({1 << 24}, kFloat32, device_);
  EXPECT_EQ(memory_stats(device_).retries, retries + 1);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(CudaFaults, out_of_memory_says_what_was_tried) {
  empty_cache(device_);
  fail_next("cudaMalloc", cudaErrorMemoryAllocation, 100);
  EXPECT_THAT(error_of([&] { empty({1 << 24}, kFloat32, device_); }),
              StartsWith("E-OUT-OF-MEMORY: allocate: cuda:0"));
  fail_next("cudaMalloc", cudaSuccess, 0);
}

TEST_F(CudaFaults, a_kernel_that_is_not_for_this_gpu_says_what_to_do) {
  fail_next("launch", cudaErrorNoKernelImageForDevice);
  const std::string error = error_of([&] { ones({4}, kFloat32, device_); });
  EXPECT_THAT(error,
              StartsWith("E-CUDA-ARCH: elementwise: no kernel image is available for execution on cuda:0"));
  EXPECT_THAT(error, HasSubstr("hint: 01_env_check says what this build has"));
}

TEST_F(CudaFaults, a_launch_that_cuda_refuses_bears_the_kernels_name) {
  fail_next("launch", cudaErrorInvalidConfiguration);
  EXPECT_THAT(
      error_of([&] { ones({4}, kFloat32, device_); }),
      StartsWith("E-CUDA: elementwise: invalid configuration argument (cudaErrorInvalidConfiguration)"));
}

TEST_F(CudaFaults, an_illegal_address_sticks_and_may_be_of_earlier_work) {
  const Tensor x = ones({4}, kFloat32, device_);
  fail_next("cudaStreamSynchronize", cudaErrorIllegalAddress);
  const std::string error = error_of([&] { x.cpu(); });
  EXPECT_THAT(error,
              StartsWith("E-ILLEGAL-ADDRESS: cuda: an illegal memory access was encountered on cuda:0"));
  EXPECT_THAT(error, HasSubstr("comes from work that was queued earlier"));
  EXPECT_THAT(error, HasSubstr("GRADUS_LAUNCH_BLOCKING=1"));
  EXPECT_THAT(error, HasSubstr("compute-sanitizer"));
}

TEST_F(CudaFaults, NUM_05_a_label_out_of_range_traps_with_operation_label_and_bound) {
  const Tensor logits = randn({3, 10}, kFloat32, device_);
  const Tensor target = tensor(std::vector<int64_t>{1, 10, 2}, {.device = device_});
  const std::string error = error_of([&] {  // of several kernels: a later launch may report it already
    cross_entropy(logits, target);
    synchronize(device_);
  });
  EXPECT_THAT(error, StartsWith("E-DEVICE-ASSERT: cross_entropy: device-side assert triggered on cuda:0: "));
  EXPECT_THAT(error, HasSubstr("Target 10 is out of bounds"));
  EXPECT_THAT(error, HasSubstr("sample 1"));
  EXPECT_EQ(error_of([&] { logits.cpu(); }), error);  // and again, whatever asks
}

TEST_F(CudaFaults, an_index_out_of_range_traps_with_operation_index_and_bound) {
  const Tensor table = randn({5, 2}, kFloat32, device_);
  const Tensor index = tensor(std::vector<int64_t>{0, 5}, {.device = device_});
  EXPECT_EQ(error_of([&] { embedding(table, index); }), "");
  EXPECT_THAT(error_of([&] { synchronize(device_); }),
              StartsWith("E-DEVICE-ASSERT: embedding: device-side assert triggered on cuda:0: embedding: "
                         "index 5 is out of bounds for dimension 0 with size 5"));
}

TEST_F(CudaFaults, an_index_out_of_range_stops_the_kernels_that_come_after_it_too) {
  Tensor index = zeros({100}, kInt64);  // so many are sorted before they are added
  index.data<int64_t>()[70] = -3;
  const Tensor x = zeros({5}, kFloat32, device_), on_device = index.to(device_),
               values = ones({100}, kFloat32, device_);
  const std::string error = error_of([&] {
    index_add(x, 0, on_device, values);
    synchronize(device_);
  });
  EXPECT_THAT(error,
              StartsWith("E-DEVICE-ASSERT: index_add: device-side assert triggered on cuda:0: index_add: "
                         "index -3 is out of bounds for dimension 0 with size 5"));
}

}  // namespace
}  // namespace gradus
