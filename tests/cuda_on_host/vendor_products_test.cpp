// Matrix products and convolutions on a library that can be made to refuse: which of its algorithms are
// taken, and what happens where it has none, or no memory for one. That the numbers are right is tested with
// the operations; here they are compared with the cpu's.
#include <cublasLt.h>
#include <cuda_on_host/runtime.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <gradus/backends/cuda/conv_problem.h>
#include <gradus/gradus.h>
#include <support/expect_error.h>

#include <cmath>
#include <functional>
#include <thread>
#include <utility>

namespace gradus {
namespace {

using cuda_on_host::fail_next;
using testing::error_of;

double largest_difference(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.cpu().to(kFloat64).to_vector<double>(),
                            y = b.cpu().to(kFloat64).to_vector<double>();
  EXPECT_EQ(a.sizes(), b.sizes());
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double difference = std::fabs(x[i] - y[i]);
    if (!(difference <= worst)) worst = difference;
  }
  return worst;
}

class CudaProducts : public ::testing::Test {
 protected:
  ~CudaProducts() override {
    backends::cudnn::benchmark = false;
    backends::cudnn::allow_tf32 = false;
    set_float32_matmul_precision("highest");
    gradus_cuda_on_host_forget_errors();
  }
  // On the cpu and on the device.
  void expect_same(const std::function<Tensor(Device)>& f, double tolerance = 1e-5) {
    manual_seed(7);
    const Tensor want = f(Device());
    manual_seed(7);
    const Tensor got = f(device_);
    const double difference = largest_difference(got, want);
    EXPECT_TRUE(difference <= tolerance) << difference;
  }
  const Device device_{DeviceType::cuda, 0};
};

Tensor random(const Shape& sizes, Device device, DType dtype = kFloat32) {
  return randn(sizes).to(dtype).to(device);
}

TEST_F(CudaProducts, more_matrices_than_a_grid_takes) {
  expect_same([](Device d) { return bmm(random({70000, 2, 3}, d), random({70000, 3, 2}, d)); });
  expect_same([](Device d) {
    return bmm(random({70000, 1, 2}, d), random({2, 1}, d).expand({70000, 2, 1}));
  });
}

TEST_F(CudaProducts, operands_at_odd_addresses) {
  for (const DType dtype : {kFloat16, kFloat32})
    expect_same(
        [dtype](Device d) {
          const Tensor a = random({64}, d, dtype).narrow(0, 1, 24).view({4, 6});
          const Tensor b = random({64}, d, dtype).narrow(0, 3, 30).view({6, 5});
          return linear(a, b.t(), random({8}, d, dtype).narrow(0, 1, 5));
        },
        dtype == kFloat16 ? 2e-2 : 1e-5);
}

TEST_F(CudaProducts, tf32_only_where_it_is_allowed) {
  const Tensor a = random({8, 64}, device_), b = random({64, 8}, device_);
  const Tensor exact = matmul(a.cpu(), b.cpu());
  EXPECT_TRUE(largest_difference(matmul(a, b), exact) < 1e-5);
  set_float32_matmul_precision("high");
  const double rounded = largest_difference(matmul(a, b), exact);
  EXPECT_TRUE(rounded > 1e-4 && rounded < 1e-1) << rounded;
  const Tensor c = a.to(kFloat64), d = b.to(kFloat64);
  EXPECT_TRUE(largest_difference(matmul(c, d), matmul(c.cpu(), d.cpu())) < 1e-12);
}

TEST_F(CudaProducts, a_bias_that_the_library_does_not_add_is_added_after) {
  fail_next("cublasLtMatmulAlgoGetHeuristic", CUBLAS_STATUS_NOT_SUPPORTED);
  expect_same([](Device d) { return linear(random({11, 13}, d), random({17, 13}, d), random({17}, d)); });
}

TEST_F(CudaProducts, no_algorithm_at_all) {
  fail_next("cublasLtMatmulAlgoGetHeuristic", CUBLAS_STATUS_NOT_SUPPORTED, 2);
  const Tensor a = random({12, 19}, device_), b = random({19, 5}, device_);
  EXPECT_EQ(
      error_of([&] { matmul(a, b); }),
      "E-CUBLAS: matmul: cuBLASLt has no algorithm for matrices of shapes [1, 12, 19] and [1, 19, 5] of "
      "float32 on cuda:0");
  fail_next("cublasLtMatmulAlgoGetHeuristic", CUBLAS_STATUS_NOT_SUPPORTED, 0);
}

TEST_F(CudaProducts, an_algorithm_is_chosen_once) {
  const Tensor a = random({23, 29}, device_), b = random({29, 31}, device_), c = random({29, 37}, device_);
  matmul(a, b);
  fail_next("cublasLtMatmulAlgoGetHeuristic", CUBLAS_STATUS_INTERNAL_ERROR);
  EXPECT_EQ(error_of([&] { matmul(a, b); }), "");
  EXPECT_GRADUS_ERROR(matmul(a, c), "E-CUBLAS",
                      "cublasLtMatmulAlgoGetHeuristic: CUBLAS_STATUS_INTERNAL_ERROR on cuda:0: in words");
}

TEST_F(CudaProducts, a_product_that_fails_names_the_call) {
  const Tensor a = random({3, 4}, device_), b = random({4, 5}, device_);
  fail_next("cublasLtMatmul", CUBLAS_STATUS_EXECUTION_FAILED);
  EXPECT_EQ(error_of([&] { matmul(a, b); }),
            "E-CUBLAS: cublasLtMatmul: CUBLAS_STATUS_EXECUTION_FAILED on cuda:0: in words\n  hint: "
            "CUBLASLT_LOG_LEVEL=5 makes cuBLASLt say more");
}

TEST_F(CudaProducts, a_product_without_memory_to_work_in) {
  manual_seed(1);
  const Tensor a = random({41, 43}, device_), b = random({43, 47}, device_);
  const Tensor warm = matmul(a, b);  // the result's memory is cached; the workspace's is not
  synchronize(device_);
  empty_cache(device_);
  const Tensor reserved = empty({41, 47}, kFloat32, device_);
  fail_next("cudaMalloc", cudaErrorMemoryAllocation, 2);
  EXPECT_TRUE(largest_difference(matmul(a, b), warm) == 0);
}

TEST_F(CudaProducts, many_threads_at_once) {
  const Tensor a = random({16, 16}, device_), b = random({16, 16}, device_),
               x = random({2, 3, 8, 8}, device_), w = random({4, 3, 3, 3}, device_);
  synchronize(device_);
  const Tensor product = matmul(a, b), conv = conv2d(x, w);
  synchronize(device_);
  std::vector<std::thread> threads;
  std::vector<double> differences(4);
  for (size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const StreamGuard guard(Stream::create(device_));
      for (int i = 0; i < 5; ++i)
        differences[t] += largest_difference(matmul(a, b), product) + largest_difference(conv2d(x, w), conv);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(differences, std::vector<double>(4));
}

TEST_F(CudaProducts, captured_and_replayed) {
  const Tensor a = random({4, 6}, device_), b = random({6, 5}, device_), x = random({2, 3, 6, 6}, device_),
               w = random({4, 3, 3, 3}, device_);
  const Tensor product = matmul(a, b), conv = conv2d(x, w);  // made ready before
  backends::cudnn::benchmark = true;                         // which waits, and so is put off
  synchronize(device_);
  Graph graph(device_);
  Tensor p, c;
  {
    const GraphCapture capture(graph);
    p = matmul(a, b), c = conv2d(x, w);
  }
  graph.replay();
  synchronize(device_);
  EXPECT_EQ(largest_difference(p, product), 0);
  EXPECT_EQ(largest_difference(c, conv), 0);
}

// x, w and bias of a convolution that has everything, on a device.
struct Conv {
  Conv(Device device, bool last, DType dtype = kFloat32)
      : x(random({3, 6, 9, 8}, device, dtype)),
        w(random({8, 3, 3, 2}, device, dtype)),
        b(random({8}, device, dtype)) {
    if (last) x = x.contiguous(MemoryFormat::channels_last);
    options = {.stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}, .groups = 2};
  }
  Tensor forward() const { return conv2d(x, w, b, options); }
  Tensor gradients() {
    for (Tensor* t : {&x, &w, &b}) t->requires_grad_();
    const Tensor y = forward();
    (y * y).sum().backward();
    return cat({x.grad().flatten(), w.grad().flatten(), b.grad().flatten()});
  }
  Tensor x, w, b;
  Conv2dOptions options;
};

TEST_F(CudaProducts, the_three_products_in_both_layouts) {
  for (const bool last : {false, true})
    for (const DType dtype : {kFloat32, kFloat64}) {
      expect_same([&](Device d) { return Conv(d, last, dtype).forward(); }, 1e-4);
      expect_same([&](Device d) { return Conv(d, last, dtype).gradients(); }, 2e-3);
    }
}

TEST_F(CudaProducts, more_images_than_cudnn_counts) {
  const int64_t most = std::exchange(cuda::largest_numel, 2 * 432);  // two images at once, of three
  for (const bool last : {false, true}) {
    expect_same([&](Device d) { return Conv(d, last).forward(); }, 1e-4);
    expect_same([&](Device d) { return Conv(d, last).gradients(); }, 2e-3);
  }
  backends::cudnn::benchmark = true;  // trying must not spoil a sum that has begun
  expect_same([](Device d) { return Conv(d, true).gradients(); }, 2e-3);
  cuda::largest_numel = most;
}

TEST_F(CudaProducts, tf32_of_convolutions_has_a_switch_of_its_own) {
  const Conv conv(device_, true);
  const Tensor exact = conv2d(conv.x.cpu(), conv.w.cpu(), conv.b.cpu(), conv.options);
  set_float32_matmul_precision("high");
  EXPECT_TRUE(largest_difference(conv.forward(), exact) < 1e-5);
  backends::cudnn::allow_tf32 = true;
  const double rounded = largest_difference(conv.forward(), exact);
  EXPECT_TRUE(rounded > 1e-4 && rounded < 1e-1) << rounded;
}

TEST_F(CudaProducts, benchmark_tries_and_keeps_the_right_numbers) {
  backends::cudnn::benchmark = true;
  expect_same([](Device d) { return Conv(d, true).gradients(); }, 2e-3);
  expect_same([](Device d) { return Conv(d, true).gradients(); }, 2e-3);  // by what was kept
}

TEST_F(CudaProducts, benchmark_tries_once) {
  backends::cudnn::benchmark = true;
  const Tensor x = random({1, 2, 7, 7}, device_), w = random({3, 2, 2, 2}, device_);
  conv2d(x, w);
  fail_next("cudnnFindConvolutionForwardAlgorithmEx", CUDNN_STATUS_INTERNAL_ERROR);
  EXPECT_EQ(error_of([&] { conv2d(x, w); }), "");
  EXPECT_GRADUS_ERROR(conv2d(x, random({5, 2, 2, 2}, device_)), "E-CUDNN",
                      "cudnnFindConvolutionAlgorithm: CUDNN_STATUS_INTERNAL_ERROR on cuda:0");
}

TEST_F(CudaProducts, a_convolutions_bias_that_the_library_does_not_add_is_added_after) {
  fail_next("cudnnConvolutionBiasActivationForward", CUDNN_STATUS_NOT_SUPPORTED);
  expect_same([](Device d) {
    return conv2d(random({2, 3, 5, 4}, d), random({6, 3, 2, 2}, d), random({6}, d));
  });
  fail_next("cudnnConvolutionBiasActivationForward", CUDNN_STATUS_INTERNAL_ERROR);  // nor is it asked again
  expect_same([](Device d) {
    return conv2d(random({2, 3, 5, 4}, d), random({6, 3, 2, 2}, d), random({6}, d));
  });
  fail_next("cudnnConvolutionBiasActivationForward", 0, 0);
}

TEST_F(CudaProducts, the_next_algorithm_where_one_is_not_for_the_problem) {
  int64_t outputs = 5;  // each a problem that was not seen before
  for (const cudnnStatus_t status : {CUDNN_STATUS_NOT_SUPPORTED, CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
                                     CUDNN_STATUS_BAD_PARAM, CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER}) {
    fail_next("cudnnConvolutionForward", status);
    ++outputs;
    expect_same([=](Device d) { return conv2d(random({2, 3, 5, 6}, d), random({outputs, 3, 2, 2}, d)); });
  }
}

TEST_F(CudaProducts, the_next_algorithm_where_there_is_no_memory_for_one) {
  manual_seed(1);
  const Tensor x = random({2, 3, 5, 7}, device_), w = random({6, 3, 2, 2}, device_);
  const Tensor warm = conv2d(x, w);
  synchronize(device_);
  empty_cache(device_);
  fail_next("cudaMalloc", cudaErrorMemoryAllocation, 2);
  EXPECT_EQ(largest_difference(conv2d(x, w), warm), 0);
}

TEST_F(CudaProducts, row_major_where_there_is_nothing_for_channels_last) {
  const auto f = [](Device d) {
    return conv2d(random({2, 4, 6, 7}, d).contiguous(MemoryFormat::channels_last), random({5, 4, 3, 2}, d));
  };
  fail_next("cudnnGetConvolutionForwardAlgorithm_v7", CUDNN_STATUS_NOT_SUPPORTED);
  expect_same(f);
  EXPECT_TRUE(f(device_).is_contiguous(MemoryFormat::channels_last));
}

TEST_F(CudaProducts, a_convolution_without_any_algorithm) {
  fail_next("cudnnGetConvolutionForwardAlgorithm_v7", CUDNN_STATUS_NOT_SUPPORTED);
  EXPECT_GRADUS_ERROR(
      conv2d(random({1, 1, 9, 13}, device_), random({1, 1, 3, 5}, device_)), "E-CUDNN",
      "cudnnConvolutionForward: cuDNN has no algorithm for this convolution that gives the same "
      "result on every run, on cuda:0");
}

TEST_F(CudaProducts, a_convolution_that_fails_names_the_call) {
  const Conv conv(device_, false);
  fail_next("cudnnConvolutionBiasActivationForward", CUDNN_STATUS_EXECUTION_FAILED);
  EXPECT_EQ(error_of([&] { conv.forward(); }),
            "E-CUDNN: cudnnConvolutionForward: CUDNN_STATUS_EXECUTION_FAILED on cuda:0\n  hint: "
            "CUDNN_LOGLEVEL_DBG=2 "
            "CUDNN_LOGDEST_DBG=stderr make cuDNN say more");
}

TEST_F(CudaProducts, a_convolution_at_an_odd_address_and_of_a_strided_weight) {
  expect_same([](Device d) {
    const Tensor x = random({2 * 3 * 5 * 5 + 1}, d).narrow(0, 1, 150).view({2, 3, 5, 5});
    const Tensor w = random({2, 2, 3, 4}, d).permute({3, 2, 0, 1});
    return conv2d(x, w, random({9}, d).narrow(0, 1, 4));
  });
}

// The wait of a device for earlier work is told from the library's own failures.
TEST_F(CudaProducts, an_error_of_earlier_work_is_reported_as_what_it_is) {
  const Tensor a = random({3, 4}, device_), b = random({4, 5}, device_);
  matmul(a, b);
  synchronize(device_);
  cuda_on_host::enqueue(nullptr, [] { throw std::runtime_error("fault"); });
  while (cudaStreamQuery(nullptr) == cudaErrorNotReady) std::this_thread::yield();
  const std::string error = error_of([&] { matmul(a, b); });
  EXPECT_THAT(error, ::testing::HasSubstr("comes from work that was queued earlier"));
}

}  // namespace
}  // namespace gradus
