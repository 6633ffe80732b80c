// cuDNN's functions for the three products of a convolution, under the same names. Internal to cuda/.
#pragma once
#include <gradus/backends/cuda/conv_problem.h>

namespace gradus::cuda {

/// Where the operands are; which of them is written depends on the product.
struct ConvAddresses {
  void *x, *w, *y, *bias;
};
struct ConvScratch {
  void* data;
  size_t bytes;
};

struct ConvForwardCalls {
  using Perf = cudnnConvolutionFwdAlgoPerf_t;
  static constexpr const char* kName = "cudnnConvolutionForward";
  static constexpr int kAlgorithms = CUDNN_CONVOLUTION_FWD_ALGO_COUNT;

  static cudnnStatus_t estimate(cudnnHandle_t handle, const ConvDescriptors& d, int* count, Perf* perf) {
    return cudnn().cudnnGetConvolutionForwardAlgorithm_v7(handle, d.x, d.w, d.conv, d.y, kAlgorithms, count,
                                                          perf);
  }
  static cudnnStatus_t measure(cudnnHandle_t handle, const ConvDescriptors& d, const ConvAddresses& a,
                               ConvScratch scratch, int* count, Perf* perf) {
    return cudnn().cudnnFindConvolutionForwardAlgorithmEx(
        handle, d.x, a.x, d.w, a.w, d.conv, d.y, a.y, kAlgorithms, count, perf, scratch.data, scratch.bytes);
  }
  static cudnnStatus_t run(cudnnHandle_t handle, const ConvDescriptors& d, const ConvAddresses& a,
                           int algorithm, ConvScratch scratch, const void* alpha, const void* beta) {
    return cudnn().cudnnConvolutionForward(handle, alpha, d.x, a.x, d.w, a.w, d.conv,
                                           static_cast<cudnnConvolutionFwdAlgo_t>(algorithm), scratch.data,
                                           scratch.bytes, beta, d.y, a.y);
  }
  /// y = conv(x, w) + bias. `zero` is of the kind that alpha is.
  static cudnnStatus_t run_with_bias(cudnnHandle_t handle, const ConvDescriptors& d, const ConvAddresses& a,
                                     int algorithm, ConvScratch scratch, const void* alpha,
                                     const void* zero) {
    return cudnn().cudnnConvolutionBiasActivationForward(
        handle, alpha, d.x, a.x, d.w, a.w, d.conv, static_cast<cudnnConvolutionFwdAlgo_t>(algorithm),
        scratch.data, scratch.bytes, zero, d.y, a.y, d.bias, a.bias, d.identity, d.y, a.y);
  }
};

struct ConvInputCalls {
  using Perf = cudnnConvolutionBwdDataAlgoPerf_t;
  static constexpr const char* kName = "cudnnConvolutionBackwardData";
  static constexpr int kAlgorithms = CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT;

  static cudnnStatus_t estimate(cudnnHandle_t handle, const ConvDescriptors& d, int* count, Perf* perf) {
    return cudnn().cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, d.w, d.y, d.conv, d.x, kAlgorithms,
                                                               count, perf);
  }
  static cudnnStatus_t measure(cudnnHandle_t handle, const ConvDescriptors& d, const ConvAddresses& a,
                               ConvScratch scratch, int* count, Perf* perf) {
    return cudnn().cudnnFindConvolutionBackwardDataAlgorithmEx(
        handle, d.w, a.w, d.y, a.y, d.conv, d.x, a.x, kAlgorithms, count, perf, scratch.data, scratch.bytes);
  }
  static cudnnStatus_t run(cudnnHandle_t handle, const ConvDescriptors& d, const ConvAddresses& a,
                           int algorithm, ConvScratch scratch, const void* alpha, const void* beta) {
    return cudnn().cudnnConvolutionBackwardData(handle, alpha, d.w, a.w, d.y, a.y, d.conv,
                                                static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm),
                                                scratch.data, scratch.bytes, beta, d.x, a.x);
  }
};

struct ConvWeightCalls {
  using Perf = cudnnConvolutionBwdFilterAlgoPerf_t;
  static constexpr const char* kName = "cudnnConvolutionBackwardFilter";
  static constexpr int kAlgorithms = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT;

  static cudnnStatus_t estimate(cudnnHandle_t handle, const ConvDescriptors& d, int* count, Perf* perf) {
    return cudnn().cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, d.x, d.y, d.conv, d.w, kAlgorithms,
                                                                 count, perf);
  }
  static cudnnStatus_t measure(cudnnHandle_t handle, const ConvDescriptors& d, const ConvAddresses& a,
                               ConvScratch scratch, int* count, Perf* perf) {
    return cudnn().cudnnFindConvolutionBackwardFilterAlgorithmEx(
        handle, d.x, a.x, d.y, a.y, d.conv, d.w, a.w, kAlgorithms, count, perf, scratch.data, scratch.bytes);
  }
  static cudnnStatus_t run(cudnnHandle_t handle, const ConvDescriptors& d, const ConvAddresses& a,
                           int algorithm, ConvScratch scratch, const void* alpha, const void* beta) {
    return cudnn().cudnnConvolutionBackwardFilter(handle, alpha, d.x, a.x, d.y, a.y, d.conv,
                                                  static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm),
                                                  scratch.data, scratch.bytes, beta, d.w, a.w);
  }
};

}  // namespace gradus::cuda
