// What the stand-in's descriptors hold.
#pragma once
#include <cuda_on_host/vendor.h>
#include <cudnn.h>

struct cudnnContext {
  int device;
  cudaStream_t stream;
};
struct cudnnTensorStruct {
  cudnnDataType_t type;
  cudnnTensorFormat_t format;
  int size[4];
  int64_t stride[4];
  int64_t numel() const { return int64_t{size[0]} * size[1] * size[2] * size[3]; }
  int64_t at(int n, int c, int h, int w) const {
    return n * stride[0] + c * stride[1] + h * stride[2] + w * stride[3];
  }
};
struct cudnnFilterStruct : cudnnTensorStruct {};
struct cudnnActivationStruct {
  cudnnActivationMode_t mode;
};
struct cudnnConvolutionStruct {
  int padding[2], stride[2], dilation[2], groups;
  cudnnDataType_t compute;
  cudnnMathType_t math;
};

namespace gradus::cuda_on_host {

inline constexpr auto kOk = CUDNN_STATUS_SUCCESS;
inline constexpr auto kBad = CUDNN_STATUS_BAD_PARAM;
inline constexpr auto kUnsupported = CUDNN_STATUS_NOT_SUPPORTED;

inline cudnnStatus_t injected(const char* function) {
  return static_cast<cudnnStatus_t>(injected_status(function));
}

inline int output_size(int size, int kernel, int stride, int padding, int dilation) {
  return (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
}

}  // namespace gradus::cuda_on_host
