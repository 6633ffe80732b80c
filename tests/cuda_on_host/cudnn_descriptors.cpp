// cuDNN's handles and descriptors. They refuse what NVIDIA's do, which can be asked without a GPU
// (conv_descriptors_test.cpp).
#include <cuda_on_host/cudnn_structs.h>

using namespace gradus::cuda_on_host;

namespace {

cudnnStatus_t set_packed(cudnnTensorStruct& t, cudnnTensorFormat_t format, cudnnDataType_t type, int n, int c,
                         int h, int w) {
  if (n < 1 || c < 1 || h < 1 || w < 1) return kBad;
  if (format != CUDNN_TENSOR_NCHW && format != CUDNN_TENSOR_NHWC) return kUnsupported;
  t = {type, format, {n, c, h, w}, {}};
  const int64_t plane = int64_t{h} * w;
  if (static_cast<double>(n) * c * static_cast<double>(plane) >= 0x1p31) return kUnsupported;
  const int64_t nchw[] = {c * plane, plane, w, 1}, nhwc[] = {c * plane, 1, int64_t{w} * c, c};
  for (int d = 0; d < 4; ++d) t.stride[d] = format == CUDNN_TENSOR_NCHW ? nchw[d] : nhwc[d];
  return kOk;
}

}  // namespace

const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_SUCCESS:
      return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_BAD_PARAM:
      return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_NOT_SUPPORTED:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_EXECUTION_FAILED:
      return "CUDNN_STATUS_EXECUTION_FAILED";
    default:
      return "CUDNN_STATUS_INTERNAL_ERROR";
  }
}
void cudnnGetLastErrorString(char* message, size_t) { message[0] = 0; }

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  if (const cudnnStatus_t status = injected("cudnnCreate")) return status;
  *handle = new cudnnContext{current_device, nullptr};
  return kOk;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return kOk;
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* t) {
  *t = new cudnnTensorStruct{};
  return kOk;
}
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t t, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w) {
  return set_packed(*t, format, type, n, c, h, w);
}
cudnnStatus_t cudnnGetTensor4dDescriptor(const cudnnTensorDescriptor_t t, cudnnDataType_t* type, int* n,
                                         int* c, int* h, int* w, int* sn, int* sc, int* sh, int* sw) {
  *type = t->type, *n = t->size[0], *c = t->size[1], *h = t->size[2], *w = t->size[3];
  int* const strides[] = {sn, sc, sh, sw};
  for (int d = 0; d < 4; ++d) *strides[d] = static_cast<int>(t->stride[d]);
  return kOk;
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t t) {
  delete t;
  return kOk;
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* f) {
  *f = new cudnnFilterStruct{};
  return kOk;
}
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t f, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w) {
  return set_packed(*f, format, type, k, c, h, w);
}
cudnnStatus_t cudnnGetFilter4dDescriptor(const cudnnFilterDescriptor_t f, cudnnDataType_t* type,
                                         cudnnTensorFormat_t* format, int* k, int* c, int* h, int* w) {
  *type = f->type, *format = f->format, *k = f->size[0], *c = f->size[1], *h = f->size[2], *w = f->size[3];
  return kOk;
}
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t f) {
  delete f;
  return kOk;
}

cudnnStatus_t cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t* a) {
  *a = new cudnnActivationStruct{};
  return kOk;
}
cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t a, cudnnActivationMode_t mode,
                                           cudnnNanPropagation_t, double) {
  a->mode = mode;
  return kOk;
}
cudnnStatus_t cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t a) {
  delete a;
  return kOk;
}

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* conv) {
  *conv = new cudnnConvolutionStruct{{}, {1, 1}, {1, 1}, 1, CUDNN_DATA_FLOAT, CUDNN_DEFAULT_MATH};
  return kOk;
}
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t conv, int pad_h, int pad_w, int u,
                                              int v, int dilation_h, int dilation_w,
                                              cudnnConvolutionMode_t mode, cudnnDataType_t compute) {
  if (pad_h < 0 || pad_w < 0 || u < 1 || v < 1 || dilation_h < 1 || dilation_w < 1) return kBad;
  if (mode != CUDNN_CROSS_CORRELATION) return kUnsupported;
  *conv = {{pad_h, pad_w}, {u, v}, {dilation_h, dilation_w}, conv->groups, compute, conv->math};
  return kOk;
}
cudnnStatus_t cudnnGetConvolution2dDescriptor(const cudnnConvolutionDescriptor_t conv, int* pad_h, int* pad_w,
                                              int* u, int* v, int* dilation_h, int* dilation_w,
                                              cudnnConvolutionMode_t* mode, cudnnDataType_t* compute) {
  *pad_h = conv->padding[0], *pad_w = conv->padding[1], *u = conv->stride[0], *v = conv->stride[1];
  *dilation_h = conv->dilation[0], *dilation_w = conv->dilation[1], *mode = CUDNN_CROSS_CORRELATION;
  *compute = conv->compute;
  return kOk;
}
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t conv, int groups) {
  if (groups < 1) return kBad;
  conv->groups = groups;
  return kOk;
}
cudnnStatus_t cudnnGetConvolutionGroupCount(cudnnConvolutionDescriptor_t conv, int* groups) {
  *groups = conv->groups;
  return kOk;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t conv, cudnnMathType_t math) {
  conv->math = math;
  return kOk;
}
cudnnStatus_t cudnnGetConvolutionMathType(cudnnConvolutionDescriptor_t conv, cudnnMathType_t* math) {
  *math = conv->math;
  return kOk;
}
cudnnStatus_t cudnnGetConvolution2dForwardOutputDim(const cudnnConvolutionDescriptor_t conv,
                                                    const cudnnTensorDescriptor_t x,
                                                    const cudnnFilterDescriptor_t w, int* n, int* c, int* h,
                                                    int* k) {
  int* const out[] = {h, k};
  for (int d = 0; d < 2; ++d)
    *out[d] =
        output_size(x->size[2 + d], w->size[2 + d], conv->stride[d], conv->padding[d], conv->dilation[d]);
  *n = x->size[0], *c = w->size[0];
  return x->size[1] == w->size[1] * conv->groups ? kOk : kBad;
}
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t conv) {
  delete conv;
  return kOk;
}
