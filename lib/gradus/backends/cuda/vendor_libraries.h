// cuBLASLt and cuDNN: loaded when an operation first needs one, not linked, so that a program starts and runs
// on cpu and sim where they are missing. Internal to cuda/.
#pragma once
#include <cublasLt.h>
#include <cudnn.h>
#include <gradus/runtime/cuda_facts.h>
#include <gradus/runtime/device.h>

// The functions that are used, each library's once.
#define GRADUS_CUBLASLT_FUNCTIONS(X)       \
  X(cublasLtCreate)                        \
  X(cublasLtGetStatusName)                 \
  X(cublasLtGetStatusString)               \
  X(cublasLtMatmul)                        \
  X(cublasLtMatmulAlgoGetHeuristic)        \
  X(cublasLtMatmulDescInit_internal)       \
  X(cublasLtMatmulDescSetAttribute)        \
  X(cublasLtMatmulDescGetAttribute)        \
  X(cublasLtMatmulPreferenceInit_internal) \
  X(cublasLtMatmulPreferenceSetAttribute)  \
  X(cublasLtMatrixLayoutInit_internal)     \
  X(cublasLtMatrixLayoutSetAttribute)      \
  X(cublasLtMatrixLayoutGetAttribute)

#define GRADUS_CUDNN_FUNCTIONS(X)                  \
  X(cudnnCreate)                                   \
  X(cudnnGetErrorString)                           \
  X(cudnnGetLastErrorString)                       \
  X(cudnnSetStream)                                \
  X(cudnnCreateTensorDescriptor)                   \
  X(cudnnSetTensor4dDescriptor)                    \
  X(cudnnGetTensor4dDescriptor)                    \
  X(cudnnDestroyTensorDescriptor)                  \
  X(cudnnCreateFilterDescriptor)                   \
  X(cudnnSetFilter4dDescriptor)                    \
  X(cudnnGetFilter4dDescriptor)                    \
  X(cudnnDestroyFilterDescriptor)                  \
  X(cudnnCreateActivationDescriptor)               \
  X(cudnnSetActivationDescriptor)                  \
  X(cudnnDestroyActivationDescriptor)              \
  X(cudnnCreateConvolutionDescriptor)              \
  X(cudnnSetConvolution2dDescriptor)               \
  X(cudnnGetConvolution2dDescriptor)               \
  X(cudnnSetConvolutionGroupCount)                 \
  X(cudnnGetConvolutionGroupCount)                 \
  X(cudnnSetConvolutionMathType)                   \
  X(cudnnGetConvolutionMathType)                   \
  X(cudnnGetConvolution2dForwardOutputDim)         \
  X(cudnnDestroyConvolutionDescriptor)             \
  X(cudnnGetConvolutionForwardAlgorithm_v7)        \
  X(cudnnFindConvolutionForwardAlgorithmEx)        \
  X(cudnnConvolutionForward)                       \
  X(cudnnConvolutionBiasActivationForward)         \
  X(cudnnGetConvolutionBackwardDataAlgorithm_v7)   \
  X(cudnnFindConvolutionBackwardDataAlgorithmEx)   \
  X(cudnnConvolutionBackwardData)                  \
  X(cudnnGetConvolutionBackwardFilterAlgorithm_v7) \
  X(cudnnFindConvolutionBackwardFilterAlgorithmEx) \
  X(cudnnConvolutionBackwardFilter)

namespace gradus::cuda {

#define GRADUS_POINTER(name) decltype(&::name) name = nullptr;
struct CublasLt {
  static constexpr int kMajor = CUBLAS_VER_MAJOR;
  GRADUS_CUBLASLT_FUNCTIONS(GRADUS_POINTER)
};
struct Cudnn {
  static constexpr int kMajor = CUDNN_MAJOR;
  GRADUS_CUDNN_FUNCTIONS(GRADUS_POINTER)
};
#undef GRADUS_POINTER

/// The functions of a library that was looked for. Throws what the doctor says of one that is missing or of
/// another major version, E-CUBLAS-VERSION or E-CUDNN-VERSION too if it lacks a function.
CublasLt load_cublaslt(const LibraryFacts& found);
Cudnn load_cudnn(const LibraryFacts& found);

/// The library, loaded by the first call. Throws as above, each time it is asked for.
const CublasLt& cublaslt();
const Cudnn& cudnn();

/// Throws E-CUBLAS or E-CUDNN for any status but success, with the call and the library's words; where work
/// queued earlier failed, that error instead.
void check(const CublasLt& library, cublasStatus_t status, const char* call, Device device);
void check(const Cudnn& library, cudnnStatus_t status, const char* call, Device device);

}  // namespace gradus::cuda
