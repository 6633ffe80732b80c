// The element-wise kernels of kernels/elementwise.cuh on a GPU.
#pragma once
#include <gradus/backends/cuda/kernel.cuh>

#include "kernels/elementwise_block.cuh"

namespace gradus::cuda {

/// y = f(x...), x broadcast to y's sizes.
template <class Y, class... X, class F, int N>
void run_elementwise(const F& f, const TensorArg& y, const TensorArg* const (&x)[N], const Stream& stream) {
  kernels::run_elementwise<Y, X...>(f, y, x, [&](const auto& body) { run(body, stream); });
}

template <class F, class Y, class T>
void run_unary(const UnaryArgs& a, const Stream& stream) {
  run_elementwise<Y, T>(elementwise::bind<F, T>(a), a.y, {&a.x}, stream);
}
template <class F, class Y, class T>
void run_binary(const BinaryArgs& a, const Stream& stream) {
  run_elementwise<Y, T, T>(elementwise::bind<F, T>(a), a.y, {&a.a, &a.b}, stream);
}

template <class F>
struct Launcher<UnaryKernel<F>> {
  template <class T>
  static void run(const UnaryArgs& a, const Stream& stream) {
    run_unary<F, T, T>(a, stream);
  }
};
template <class F>
struct Launcher<BinaryKernel<F>> {
  template <class T>
  static void run(const BinaryArgs& a, const Stream& stream) {
    run_binary<F, T, T>(a, stream);
  }
};
template <class F>
struct Launcher<UnaryTestKernel<F>> {
  template <class T>
  static void run(const UnaryArgs& a, const Stream& stream) {
    run_unary<F, bool, T>(a, stream);
  }
};
template <class F>
struct Launcher<CompareKernel<F>> {
  template <class T>
  static void run(const BinaryArgs& a, const Stream& stream) {
    run_binary<F, bool, T>(a, stream);
  }
};

}  // namespace gradus::cuda
