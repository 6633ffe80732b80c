// Matrix products.
#pragma once
#include <gradus/tensor/tensor.h>

namespace gradus {

/// As torch.matmul: (K)·(K) is a dot product, (M, K)·(K, N) a matrix product, a 1-D operand is a row on the
/// left and a column on the right, more dimensions are batches and broadcast. Both floating point and of one
/// dtype (E-DTYPE), on one device; inner sizes equal (E-SHAPE).
Tensor matmul(const Tensor& a, const Tensor& b);
/// matmul of two 2-D tensors.
Tensor mm(const Tensor& a, const Tensor& b);
/// matmul of (B, M, K) and (B, K, N).
Tensor bmm(const Tensor& a, const Tensor& b);
/// x weight^T + bias, as torch.nn.functional.linear: x (…, in), weight (out, in), bias (out) or undefined.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

}  // namespace gradus
