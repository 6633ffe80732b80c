// y = a b (+ bias): the operands of a matrix product, and the functions that run it on each device.
#pragma once
#include <gradus/runtime/stream.h>
#include <gradus/runtime/tensor_arg.h>

#include <tuple>

namespace gradus {

/// a (B, M, K), b (B, K, N), y (B, M, N), all 3-D; a stride of 0 along B repeats a matrix. bias (N) is
/// optional. Each matrix of a and b has a stride of 1 along one of its dimensions; y is row-major.
struct MatmulArgs {
  TensorArg a, b, bias, y;
  static constexpr auto operands =
      std::tuple{in(&MatmulArgs::a), in(&MatmulArgs::b), in(&MatmulArgs::bias), out(&MatmulArgs::y)};
};

/// oneDNN; a tiled loop for float64 and for products too small to be worth a library call.
/// backends/cpu/matmul.cpp
void matmul_cpu(const MatmulArgs& args, const Stream& stream);
/// cuBLASLt, which adds the bias too. backends/cuda/matmul.cpp
void matmul_cuda(const MatmulArgs& args, const Stream& stream);

}  // namespace gradus
