#include <gradus/runtime/cuda_architectures.h>
#include <gtest/gtest.h>

namespace gradus {
namespace {

TEST(CudaArchitectures, written_as_nvcc_names_them) {
  auto text = [](const char* list) { return to_string(parse_cuda_architectures(list)); };
  EXPECT_EQ(text("80-real;90"), "sm_80, sm_90 and PTX of compute_90");
  EXPECT_EQ(text("75-virtual"), "PTX of compute_75");
  EXPECT_EQ(text("90a-real;100f-real"), "sm_90a, sm_100f");
  EXPECT_EQ(text("86"), "sm_86 and PTX of compute_86");
  EXPECT_EQ(text(""), "none");
  EXPECT_EQ(text("native;all"), "none");
}

TEST(CudaArchitectures, binaries_run_within_their_major_version) {
  const auto built = parse_cuda_architectures("80-real");
  EXPECT_EQ(kernel_image(built, 8, 0), KernelImage::binary);
  EXPECT_EQ(kernel_image(built, 8, 9), KernelImage::binary);
  EXPECT_EQ(kernel_image(built, 7, 5), KernelImage::none);
  EXPECT_EQ(kernel_image(built, 9, 0), KernelImage::none);
  EXPECT_EQ(kernel_image(parse_cuda_architectures("86-real"), 8, 0), KernelImage::none);
  EXPECT_EQ(kernel_image(parse_cuda_architectures("100-real"), 10, 3), KernelImage::binary);
}

TEST(CudaArchitectures, ptx_serves_all_later_ones) {
  const auto built = parse_cuda_architectures("80-real;90");
  EXPECT_EQ(kernel_image(built, 9, 0), KernelImage::binary);
  EXPECT_EQ(kernel_image(built, 12, 0), KernelImage::ptx);
  EXPECT_EQ(kernel_image(built, 7, 0), KernelImage::none);
  EXPECT_EQ(kernel_image(parse_cuda_architectures("80-virtual;90-real"), 9, 0), KernelImage::binary);
}

TEST(CudaArchitectures, those_with_a_letter_serve_one_capability) {
  const auto built = parse_cuda_architectures("90a");
  EXPECT_EQ(kernel_image(built, 9, 0), KernelImage::binary);
  EXPECT_EQ(kernel_image(built, 10, 0), KernelImage::none);
  EXPECT_EQ(kernel_image(parse_cuda_architectures("100a-real"), 10, 3), KernelImage::none);
}

}  // namespace
}  // namespace gradus
