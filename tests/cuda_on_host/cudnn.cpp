// Convolutions, as the backend calls them in cuDNN. They read nothing but their descriptors, and what cuDNN
// refuses, in its documentation or when asked on a machine without a GPU, is refused, so that a wrong
// descriptor gives a wrong number or an error. Algorithms that must not be chosen are offered, and give other
// numbers.
#include <cuda_on_host/cudnn_structs.h>

#include <limits>
#include <vector>

using namespace gradus::cuda_on_host;

namespace {

constexpr size_t kWorkspace = size_t{24} << 20;  // of the algorithms that need one

Element element(cudnnDataType_t type) {
  return type == CUDNN_DATA_HALF       ? Element::f16
         : type == CUDNN_DATA_BFLOAT16 ? Element::bf16
         : type == CUDNN_DATA_DOUBLE   ? Element::f64
                                       : Element::f32;
}

// A convolution: copied into the work that is queued.
struct Problem {
  cudnnTensorStruct x, y;
  cudnnFilterStruct w;
  cudnnConvolutionStruct conv;

  cudnnStatus_t status() const {
    const auto out = [this](int d) {
      return output_size(x.size[2 + d], w.size[2 + d], conv.stride[d], conv.padding[d], conv.dilation[d]);
    };
    if (x.type != w.type || x.type != y.type) return kBad;
    if (x.size[1] != w.size[1] * conv.groups || w.size[0] % conv.groups != 0) return kBad;
    if (y.size[0] != x.size[0] || y.size[1] != w.size[0] || y.size[2] != out(0) || y.size[3] != out(1))
      return kBad;
    if (x.format != y.format || x.format != w.format) return kUnsupported;
    const bool wide = x.type == CUDNN_DATA_DOUBLE;
    if (conv.compute != (wide ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT)) return kUnsupported;
    if (wide && x.format == CUDNN_TENSOR_NHWC) return kUnsupported;
    return kOk;
  }

  // An input as it goes into the products.
  double read(const void* data, int64_t i) const {
    const double value = load(element(x.type), data, i);
    if (x.type != CUDNN_DATA_FLOAT || conv.math == CUDNN_FMA_MATH) return value;
    if (conv.math == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION)
      return static_cast<float>(static_cast<gradus::BFloat16>(static_cast<float>(value)));
    return to_tf32(value);
  }

  // Calls f(position in x, in w, in y) for every product.
  template <class F>
  void for_each_product(const F& f) const {
    const int group_in = w.size[1], group_out = w.size[0] / conv.groups;
    for (int n = 0; n < y.size[0]; ++n)
      for (int o = 0; o < y.size[1]; ++o)
        for (int i = 0; i < y.size[2]; ++i)
          for (int j = 0; j < y.size[3]; ++j)
            for (int c = 0; c < group_in; ++c)
              for (int u = 0; u < w.size[2]; ++u)
                for (int v = 0; v < w.size[3]; ++v) {
                  const int h = i * conv.stride[0] - conv.padding[0] + u * conv.dilation[0];
                  const int k = j * conv.stride[1] - conv.padding[1] + v * conv.dilation[1];
                  if (h < 0 || h >= x.size[2] || k < 0 || k >= x.size[3]) continue;
                  f(x.at(n, o / group_out * group_in + c, h, k), w.at(o, c, u, v), y.at(n, o, i, j));
                }
  }
};

Problem problem_of(cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t conv,
                   cudnnTensorDescriptor_t y) {
  return {*x, *y, *w, *conv};
}

enum class Product { forward, input, weight };

struct Call {
  Problem problem;
  Product product;
  void *x, *w, *y, *workspace;
  size_t workspace_bytes;
  double alpha, beta, spoiled;  // an algorithm that is not the same on every run shows by a factor
  const void* bias = nullptr;
};

void convolve(const Call& call, int device) {
  const Problem& p = call.problem;
  const Element type = element(p.x.type);
  const cudnnTensorStruct& out = call.product == Product::forward ? p.y
                                 : call.product == Product::input
                                     ? p.x
                                     : static_cast<const cudnnTensorStruct&>(p.w);
  void* to = call.product == Product::forward ? call.y : call.product == Product::input ? call.x : call.w;
  require_device_memory(device, call.x, p.x.numel() * size_of(type));
  require_device_memory(device, call.y, p.y.numel() * size_of(type));
  require_device_memory(device, call.w, p.w.numel() * size_of(type));
  if (call.workspace_bytes > 0) {
    require_device_memory(device, call.workspace, static_cast<int64_t>(call.workspace_bytes));
    std::memset(call.workspace, 0xab, 64);
  }
  std::vector<double> sums(static_cast<size_t>(out.numel()));
  p.for_each_product([&](int64_t x, int64_t w, int64_t y) {
    if (call.product == Product::forward)
      sums[static_cast<size_t>(y)] += p.read(call.x, x) * p.read(call.w, w);
    else if (call.product == Product::input)
      sums[static_cast<size_t>(x)] += p.read(call.y, y) * p.read(call.w, w);
    else
      sums[static_cast<size_t>(w)] += p.read(call.y, y) * p.read(call.x, x);
  });
  for (int64_t i = 0; i < out.numel(); ++i) {
    double value = call.alpha * sums[static_cast<size_t>(i)] * call.spoiled;
    if (call.beta != 0) value += call.beta * load(type, to, i);
    if (call.bias) value += load(type, call.bias, i / out.stride[1] % out.size[1]);
    store(type, to, i, value);
  }
}

bool is_aligned(const void* data) { return reinterpret_cast<uintptr_t>(data) % 16 == 0; }

cudnnStatus_t queue(cudnnHandle_t handle, const Call& call, size_t needed) {
  if (!handle || handle->device != current_device) return kBad;
  if (const cudnnStatus_t status = call.problem.status()) return status;
  if (!is_aligned(call.x) || !is_aligned(call.w) || !is_aligned(call.y) || !is_aligned(call.bias))
    return kBad;
  if (call.workspace_bytes < needed || (needed > 0 && !call.workspace)) return kBad;
  const int error = enqueue(handle->stream, [call, device = handle->device] { convolve(call, device); });
  return error ? CUDNN_STATUS_EXECUTION_FAILED : kOk;
}

double scale(const Problem& p, const void* factor) {
  return load(p.conv.compute == CUDNN_DATA_DOUBLE ? Element::f64 : Element::f32, factor, 0);
}

// What is offered: first what must not be taken.
template <class Perf, class Algorithm>
cudnnStatus_t offer(const Problem& p, Algorithm unsupported, Algorithm not_the_same, Algorithm with_workspace,
                    Algorithm without, bool measured, int requested, int* count, Perf* out) {
  if (const cudnnStatus_t status = p.status()) return status;
  const cudnnMathType_t other =
      p.conv.math == CUDNN_FMA_MATH ? CUDNN_TENSOR_OP_MATH : CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION;
  const auto same = CUDNN_DETERMINISTIC;
  const Perf all[] = {
      {unsupported, kUnsupported, -1, 0, same, p.conv.math, {}},
      {not_the_same, kOk, 1, 0, CUDNN_NON_DETERMINISTIC, p.conv.math, {}},
      {with_workspace, kOk, 2, kWorkspace, same, other, {}},
      {with_workspace, kOk, 3, size_t{1} << 40, same, p.conv.math, {}},
      {measured ? without : with_workspace, kOk, 4, measured ? 0 : kWorkspace, same, p.conv.math, {}},
      {measured ? with_workspace : without, kOk, 5, measured ? kWorkspace : 0, same, p.conv.math, {}}};
  *count = std::min(requested, 6);
  std::copy_n(all, *count, out);
  return kOk;
}

// Trying runs on the device, waits for it, and leaves anything in the output.
cudnnStatus_t try_out(cudnnHandle_t handle, void* output, const cudnnTensorStruct& t,
                      size_t workspace_bytes) {
  if (workspace_bytes < kWorkspace) return kBad;
  const int64_t n = t.numel();
  const Element type = element(t.type);
  const int error = enqueue(handle->stream, [=] {
    for (int64_t i = 0; i < n; ++i) store(type, output, i, std::numeric_limits<double>::quiet_NaN());
  });
  return error || cudaStreamSynchronize(handle->stream) != cudaSuccess ? CUDNN_STATUS_EXECUTION_FAILED : kOk;
}

}  // namespace

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t, const cudnnTensorDescriptor_t x,
                                                     const cudnnFilterDescriptor_t w,
                                                     const cudnnConvolutionDescriptor_t conv,
                                                     const cudnnTensorDescriptor_t y, const int requested,
                                                     int* count, cudnnConvolutionFwdAlgoPerf_t* out) {
  if (const cudnnStatus_t status = injected("cudnnGetConvolutionForwardAlgorithm_v7")) return status;
  return offer(problem_of(x, w, conv, y), CUDNN_CONVOLUTION_FWD_ALGO_FFT, CUDNN_CONVOLUTION_FWD_ALGO_DIRECT,
               CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
               false, requested, count, out);
}
cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const void*, const cudnnFilterDescriptor_t w,
    const void*, const cudnnConvolutionDescriptor_t conv, const cudnnTensorDescriptor_t y, void* to,
    const int requested, int* count, cudnnConvolutionFwdAlgoPerf_t* out, void*, size_t bytes) {
  if (const cudnnStatus_t status = injected("cudnnFindConvolutionForwardAlgorithmEx")) return status;
  if (const cudnnStatus_t status = try_out(handle, to, *y, bytes)) return status;
  return offer(problem_of(x, w, conv, y), CUDNN_CONVOLUTION_FWD_ALGO_FFT, CUDNN_CONVOLUTION_FWD_ALGO_DIRECT,
               CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
               true, requested, count, out);
}
cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha,
                                      const cudnnTensorDescriptor_t x, const void* x_data,
                                      const cudnnFilterDescriptor_t w, const void* w_data,
                                      const cudnnConvolutionDescriptor_t conv,
                                      cudnnConvolutionFwdAlgo_t algorithm, void* workspace, size_t bytes,
                                      const void* beta, const cudnnTensorDescriptor_t y, void* y_data) {
  if (const cudnnStatus_t status = injected("cudnnConvolutionForward")) return status;
  const Problem p = problem_of(x, w, conv, y);
  const bool plain = algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
  const bool spoiled = algorithm == CUDNN_CONVOLUTION_FWD_ALGO_DIRECT;
  return queue(handle,
               {p, Product::forward, const_cast<void*>(x_data), const_cast<void*>(w_data), y_data, workspace,
                bytes, scale(p, alpha), scale(p, beta), spoiled ? 1.25 : 1},
               plain || spoiled ? 0 : kWorkspace);
}
cudnnStatus_t cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void* alpha, const cudnnTensorDescriptor_t x, const void* x_data,
    const cudnnFilterDescriptor_t w, const void* w_data, const cudnnConvolutionDescriptor_t conv,
    cudnnConvolutionFwdAlgo_t algorithm, void* workspace, size_t bytes, const void* alpha2,
    const cudnnTensorDescriptor_t, const void*, const cudnnTensorDescriptor_t bias, const void* bias_data,
    const cudnnActivationDescriptor_t activation, const cudnnTensorDescriptor_t y, void* y_data) {
  if (const cudnnStatus_t status = injected("cudnnConvolutionBiasActivationForward")) return status;
  const Problem p = problem_of(x, w, conv, y);
  if (activation->mode != CUDNN_ACTIVATION_IDENTITY ||
      algorithm != CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM)
    return kUnsupported;
  if (bias->type != y->type || bias->size[1] != y->size[1] || bias->numel() != y->size[1] ||
      scale(p, alpha2) != 0)
    return kBad;
  return queue(handle,
               {p, Product::forward, const_cast<void*>(x_data), const_cast<void*>(w_data), y_data, workspace,
                bytes, scale(p, alpha), 0, 1, bias_data},
               kWorkspace);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t, const cudnnFilterDescriptor_t w,
                                                          const cudnnTensorDescriptor_t y,
                                                          const cudnnConvolutionDescriptor_t conv,
                                                          const cudnnTensorDescriptor_t x,
                                                          const int requested, int* count,
                                                          cudnnConvolutionBwdDataAlgoPerf_t* out) {
  return offer(problem_of(x, w, conv, y), CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT,
               CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1,
               CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD, false, requested, count, out);
}
cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w, const void*, const cudnnTensorDescriptor_t y,
    const void*, const cudnnConvolutionDescriptor_t conv, const cudnnTensorDescriptor_t x, void* to,
    const int requested, int* count, cudnnConvolutionBwdDataAlgoPerf_t* out, void*, size_t bytes) {
  if (const cudnnStatus_t status = try_out(handle, to, *x, bytes)) return status;
  return offer(problem_of(x, w, conv, y), CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT,
               CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1,
               CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD, true, requested, count, out);
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha,
                                           const cudnnFilterDescriptor_t w, const void* w_data,
                                           const cudnnTensorDescriptor_t y, const void* y_data,
                                           const cudnnConvolutionDescriptor_t conv,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void* workspace,
                                           size_t bytes, const void* beta, const cudnnTensorDescriptor_t x,
                                           void* x_data) {
  if (const cudnnStatus_t status = injected("cudnnConvolutionBackwardData")) return status;
  const Problem p = problem_of(x, w, conv, y);
  return queue(
      handle,
      {p, Product::input, x_data, const_cast<void*>(w_data), const_cast<void*>(y_data), workspace, bytes,
       scale(p, alpha), scale(p, beta), algorithm == CUDNN_CONVOLUTION_BWD_DATA_ALGO_0 ? 1.25 : 1},
      algorithm == CUDNN_CONVOLUTION_BWD_DATA_ALGO_1 ? kWorkspace : 0);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t, const cudnnTensorDescriptor_t x,
                                                            const cudnnTensorDescriptor_t y,
                                                            const cudnnConvolutionDescriptor_t conv,
                                                            const cudnnFilterDescriptor_t w,
                                                            const int requested, int* count,
                                                            cudnnConvolutionBwdFilterAlgoPerf_t* out) {
  return offer(problem_of(x, w, conv, y), CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT,
               CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1,
               CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED, false, requested, count, out);
}
cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const void*, const cudnnTensorDescriptor_t y,
    const void*, const cudnnConvolutionDescriptor_t conv, const cudnnFilterDescriptor_t w, void* to,
    const int requested, int* count, cudnnConvolutionBwdFilterAlgoPerf_t* out, void*, size_t bytes) {
  if (const cudnnStatus_t status = try_out(handle, to, *w, bytes)) return status;
  return offer(problem_of(x, w, conv, y), CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT,
               CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1,
               CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED, true, requested, count, out);
}
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha,
                                             const cudnnTensorDescriptor_t x, const void* x_data,
                                             const cudnnTensorDescriptor_t y, const void* y_data,
                                             const cudnnConvolutionDescriptor_t conv,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm, void* workspace,
                                             size_t bytes, const void* beta, const cudnnFilterDescriptor_t w,
                                             void* w_data) {
  if (const cudnnStatus_t status = injected("cudnnConvolutionBackwardFilter")) return status;
  const Problem p = problem_of(x, w, conv, y);
  return queue(
      handle,
      {p, Product::weight, const_cast<void*>(x_data), w_data, const_cast<void*>(y_data), workspace, bytes,
       scale(p, alpha), scale(p, beta), algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0 ? 1.25 : 1},
      algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 ? kWorkspace : 0);
}
