// The descriptors of convolutions, read back from NVIDIA's cuDNN (which needs no GPU for that) and from its
// stand-in.
#include <gradus/backends/cuda/conv_problem.h>
#include <support/expect_error.h>

#include <array>

namespace gradus::cuda {
namespace {

TensorArg image(const Shape& sizes, const Shape& strides, DType dtype = DType::float32) {
  return {reinterpret_cast<void*>(4096), 1, sizes, strides, dtype};
}
TensorArg nchw(const Shape& sizes, DType dtype = DType::float32) {
  return image(sizes, contiguous_strides(sizes), dtype);
}
TensorArg nhwc(const Shape& sizes, DType dtype = DType::float32) {
  return image(sizes, channels_last_strides(sizes), dtype);
}

TEST(ConvDescriptors, channels_last_where_both_images_lie_so) {
  const Shape x{2, 8, 5, 6}, y{2, 4, 5, 6};
  EXPECT_EQ(conv_format(nhwc(x), nhwc(y)), CUDNN_TENSOR_NHWC);
  EXPECT_EQ(conv_format(nchw(x), nchw(y)), CUDNN_TENSOR_NCHW);
  EXPECT_EQ(conv_format(nhwc(x), nchw(y)), CUDNN_TENSOR_NCHW);
  EXPECT_EQ(conv_format(nhwc(x, DType::float64), nhwc(y, DType::float64)), CUDNN_TENSOR_NCHW);
}

TEST(ConvDescriptors, one_channel_is_both_layouts) {
  EXPECT_EQ(conv_format(nchw({2, 1, 5, 6}), nhwc({2, 4, 5, 6})), CUDNN_TENSOR_NHWC);
  EXPECT_EQ(conv_format(nchw({2, 1, 5, 6}), nchw({2, 4, 5, 6})), CUDNN_TENSOR_NCHW);
  EXPECT_EQ(conv_format(image({2, 1, 5, 6}, {30, 1, 6, 1}), nhwc({2, 4, 5, 6})), CUDNN_TENSOR_NHWC);
  EXPECT_EQ(conv_format(nchw({2, 3, 1, 1}), nchw({2, 4, 1, 1})), CUDNN_TENSOR_NCHW);  // one pixel too
}

TEST(ConvDescriptors, images_that_one_call_can_take) {
  EXPECT_EQ(images_at_once(nchw({6, 2, 5, 5}), nchw({6, 3, 5, 5})), 6);
  EXPECT_EQ(images_at_once(nchw({3, 1, 32768, 32768}), nchw({3, 1, 1, 1})), 1);  // 2^30 elements each
  EXPECT_EQ(images_at_once(nchw({3, 1, 1, 1}), nchw({3, 1, 32768, 32767})), 2);
  EXPECT_EQ(images_at_once(nchw({100, 1, 32768, 1023}), nchw({100, 1, 1, 1})), 64);  // 64.06 would fit
  EXPECT_GRADUS_ERROR(images_at_once(nchw({1, 2, 32768, 32768}), nchw({1, 1, 1, 1})), "E-SIZE",
                      "an image of shape [1, 2, 32768, 32768]");
}

TEST(ConvDescriptors, types_and_the_precision_of_float32) {
  const auto of = [](DType d, bool tf32) {
    return conv_problem(ConvProduct::forward, CUDNN_TENSOR_NCHW, nchw({1, 2, 3, 3}, d), nchw({4, 2, 1, 1}, d),
                        nchw({1, 4, 3, 3}, d), {{1, 1}, {0, 0}, {1, 1}, 1}, false, tf32);
  };
  EXPECT_EQ(of(DType::float32, true).math, CUDNN_DEFAULT_MATH);  // which lets it use TF32
  EXPECT_EQ(of(DType::float32, false).math, CUDNN_FMA_MATH);
  EXPECT_EQ(of(DType::float64, false).math, CUDNN_DEFAULT_MATH);
  EXPECT_EQ(of(DType::float64, false).compute, CUDNN_DATA_DOUBLE);
  for (const auto& [dtype, type] :
       {std::pair(DType::float16, CUDNN_DATA_HALF), std::pair(DType::bfloat16, CUDNN_DATA_BFLOAT16)}) {
    EXPECT_EQ(of(dtype, false).math, CUDNN_TENSOR_OP_MATH);
    EXPECT_EQ(of(dtype, false).compute, CUDNN_DATA_FLOAT);
    EXPECT_EQ(of(dtype, false).type, type);
  }
}

class ConvReadback : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (std::string(GetParam()) == "stand_in") {
      library_ = cudnn();
      return;
    }
    const LibraryFacts found = find_cudnn(CUDNN_MAJOR);
    if (found.major != CUDNN_MAJOR) GTEST_SKIP() << "no cuDNN " << CUDNN_MAJOR << " on this machine";
    library_ = load_cudnn(found);
  }
  void expect_image(cudnnTensorDescriptor_t got, const TensorArg& want, cudnnDataType_t type) const {
    cudnnDataType_t t;
    std::array<int, 4> n{}, s{};
    ASSERT_EQ(
        library_.cudnnGetTensor4dDescriptor(got, &t, &n[0], &n[1], &n[2], &n[3], &s[0], &s[1], &s[2], &s[3]),
        CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(t, type);
    for (int d = 0; d < 4; ++d) {
      EXPECT_EQ(n[static_cast<size_t>(d)], want.sizes[d]);
      EXPECT_EQ(s[static_cast<size_t>(d)], want.strides[d]);
    }
  }
  Cudnn library_;
};

TEST_P(ConvReadback, what_was_described) {
  const Device device(DeviceType::cuda);
  for (const DType dtype : {DType::float16, DType::bfloat16, DType::float32})
    for (const bool last : {false, true}) {
      const auto as = [&](const Shape& s) { return last ? nhwc(s, dtype) : nchw(s, dtype); };
      const TensorArg x = as({2, 6, 9, 11}), w = as({4, 3, 3, 2}), y = as({2, 4, 4, 12});
      const Window window{{2, 1}, {1, 2}, {2, 3}, 2};
      const ConvProblem p =
          conv_problem(ConvProduct::forward, conv_format(x, y), x, w, y, window, true, false);
      const ConvDescriptors d(library_, p, device);
      expect_image(d.x, x, p.type);
      expect_image(d.y, y, p.type);
      expect_image(d.bias, as({1, 4, 1, 1}), p.type);
      cudnnDataType_t type;
      cudnnTensorFormat_t format;
      std::array<int, 4> k{};
      library_.cudnnGetFilter4dDescriptor(d.w, &type, &format, &k[0], &k[1], &k[2], &k[3]);
      EXPECT_EQ(type, p.type);
      EXPECT_EQ(format, last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW);
      EXPECT_EQ(k, (std::array<int, 4>{4, 3, 3, 2}));
      std::array<int, 6> c{};
      cudnnConvolutionMode_t mode;
      library_.cudnnGetConvolution2dDescriptor(d.conv, &c[0], &c[1], &c[2], &c[3], &c[4], &c[5], &mode,
                                               &type);
      EXPECT_EQ(c, (std::array<int, 6>{1, 2, 2, 1, 2, 3}));
      EXPECT_EQ(mode, CUDNN_CROSS_CORRELATION);
      EXPECT_EQ(type, CUDNN_DATA_FLOAT);
      int groups = 0;
      library_.cudnnGetConvolutionGroupCount(d.conv, &groups);
      EXPECT_EQ(groups, 2);
      cudnnMathType_t math;
      library_.cudnnGetConvolutionMathType(d.conv, &math);
      EXPECT_EQ(math, p.math);
      std::array<int, 4> out{};  // the library's own idea of y
      EXPECT_EQ(library_.cudnnGetConvolution2dForwardOutputDim(d.conv, d.x, d.w, &out[0], &out[1], &out[2],
                                                               &out[3]),
                CUDNN_STATUS_SUCCESS);
      EXPECT_EQ(out, (std::array<int, 4>{2, 4, 4, 12}));
    }
}

// What images_at_once() and the checks for empty tensors rest on.
TEST_P(ConvReadback, what_a_descriptor_refuses) {
  cudnnTensorDescriptor_t t;
  ASSERT_EQ(library_.cudnnCreateTensorDescriptor(&t), CUDNN_STATUS_SUCCESS);
  const auto set = [&](int n, int c) {
    return library_.cudnnSetTensor4dDescriptor(t, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, n, c, 1, 1);
  };
  EXPECT_EQ(set(32767, 65536), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(set(32768, 65536), CUDNN_STATUS_NOT_SUPPORTED);  // 2^31 elements
  EXPECT_EQ(set(0, 1), CUDNN_STATUS_BAD_PARAM);
  library_.cudnnDestroyTensorDescriptor(t);
}

TEST_P(ConvReadback, a_refusal_names_the_call) {
  ConvProblem p =
      conv_problem(ConvProduct::forward, CUDNN_TENSOR_NCHW, nchw({1, 2, 3, 3}), nchw({4, 2, 1, 1}),
                   nchw({1, 4, 3, 3}), {{1, 1}, {0, 0}, {1, 1}, 1}, false, true);
  p.stride[0] = 0;
  EXPECT_GRADUS_ERROR(ConvDescriptors(library_, p, Device(DeviceType::cuda)), "E-CUDNN",
                      "cudnnSetConvolution2dDescriptor: CUDNN_STATUS_BAD_PARAM");
}

INSTANTIATE_TEST_SUITE_P(ConvDescriptors, ConvReadback, ::testing::Values("stand_in", "nvidia"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace gradus::cuda
