// What is said where cuBLASLt or cuDNN is missing, is of another major version or lacks a function.
#include <gradus/backends/cuda/vendor_libraries.h>
#include <support/expect_error.h>

namespace gradus::cuda {
namespace {

using gradus::testing::error_of;

TEST(VendorLibraries, cublas_that_is_missing) {
  EXPECT_EQ(
      error_of([] { load_cublaslt({.name = "cuBLAS", .file = "libcublasLt.so.99"}); }),
      str("E-CUBLAS-MISSING: cuBLAS ", CUBLAS_VER_MAJOR,
          " is missing: libcublasLt.so.99: cannot open shared object file; without it there is no matrix "
          "product\n  hint: install cuBLAS ",
          CUBLAS_VER_MAJOR, " (./gradus setup --cuda does), or put its folder on LD_LIBRARY_PATH"));
}

TEST(VendorLibraries, cudnn_that_is_missing) {
  EXPECT_EQ(
      error_of([] { load_cudnn({.name = "cuDNN", .file = "libcudnn.so.9"}); }),
      "E-CUDNN-MISSING: cuDNN 9 is missing: libcudnn.so.9: cannot open shared object file; without it there "
      "is no convolution\n  hint: install cuDNN 9 (./gradus setup --cuda does), or put its folder on "
      "LD_LIBRARY_PATH");
}

TEST(VendorLibraries, a_library_that_is_there_but_cannot_be_loaded_says_why) {
  EXPECT_GRADUS_ERROR(
      load_cudnn({.name = "cuDNN", .file = "libcudnn.so.9", .error = "libcudnn.so.9: file too short"}),
      "E-CUDNN-MISSING", "libcudnn.so.9: file too short");
}

TEST(VendorLibraries, another_major_version) {
  EXPECT_EQ(
      error_of([] {
        load_cudnn({.name = "cuDNN",
                    .file = "libcudnn.so.8",
                    .path = "/usr/lib/libcudnn.so.8",
                    .version = "8.9.7",
                    .major = 8});
      }),
      "E-CUDNN-VERSION: this build needs cuDNN 9, found 8.9.7 at /usr/lib/libcudnn.so.8; without it there is "
      "no convolution\n  hint: install cuDNN 9 (./gradus setup --cuda does), or put its folder on "
      "LD_LIBRARY_PATH");
  EXPECT_GRADUS_ERROR(load_cublaslt({.name = "cuBLAS", .path = "/x/libcublasLt.so.11", .major = 11}),
                      "E-CUBLAS-VERSION", "found  at /x/libcublasLt.so.11");
}

TEST(VendorLibraries, a_function_that_is_missing_is_named) {
  const LibraryFacts other{
      .name = "cuDNN", .file = "libm.so.6", .path = "libm.so.6", .version = "9.0.0", .major = CUDNN_MAJOR};
  EXPECT_EQ(
      error_of([&] { load_cudnn(other); }),
      "E-CUDNN-VERSION: cuDNN 9.0.0 at libm.so.6 has no function cudnnCreate\n  hint: install a newer cuDNN "
      "(./gradus setup --cuda does)");
}

// NVIDIA's own, where they are: all functions of the lists are in them.
TEST(VendorLibraries, cublas_has_all_functions) {
  const LibraryFacts found = find_cublas(CUBLAS_VER_MAJOR);
  if (found.major != CUBLAS_VER_MAJOR) GTEST_SKIP() << "no cuBLAS " << CUBLAS_VER_MAJOR << " on this machine";
  EXPECT_NE(load_cublaslt(found).cublasLtMatmul, nullptr);
}
TEST(VendorLibraries, cudnn_has_all_functions) {
  const LibraryFacts found = find_cudnn(CUDNN_MAJOR);
  if (found.major != CUDNN_MAJOR) GTEST_SKIP() << "no cuDNN " << CUDNN_MAJOR << " on this machine";
  EXPECT_NE(load_cudnn(found).cudnnConvolutionForward, nullptr);
}

}  // namespace
}  // namespace gradus::cuda
