// A matrix product in cuBLASLt's words. Internal to cuda/.
#pragma once
#include <gradus/backends/cuda/vendor_libraries.h>
#include <gradus/runtime/math_mode.h>

#include <compare>

#include "kernels/matmul.cuh"

namespace gradus::cuda {

/// D = op(A) op(B), column-major, for a batch of matrices. Read column by column, our row-major y is its
/// transpose, and y^T = b^T a^T: so D is y, A is our b and B our a, and nothing is copied.
/// All that an algorithm is chosen by, and so the key under which it is kept.
struct MatmulProblem {
  struct Matrix {
    int64_t rows, columns, leading;  ///< as stored; columns are `leading` elements apart
    int64_t batch_stride = 0;        ///< elements; 0 repeats one matrix
    cublasOperation_t op;
    uint32_t alignment = 0;  ///< of its address, bytes, at most 256
    auto operator<=>(const Matrix&) const = default;
  };
  Matrix a, b, d;
  int32_t batch;
  cudaDataType_t type, scale_type;
  cublasComputeType_t compute;
  uint32_t bias_alignment;  ///< 0: no bias. It has an element for each row of D.
  uint64_t workspace;       ///< bytes that an algorithm may use
  auto operator<=>(const MatmulProblem&) const = default;
};

/// The product of `args`, which must have elements to add up. TF32 for float32 where `precision` lets it.
MatmulProblem matmul_problem(const MatmulArgs& args, MatmulPrecision precision, size_t workspace);

/// cuBLASLt's descriptors of a problem. They own no memory.
struct MatmulDescriptors {
  /// `bias` is read only by the product itself. Throws E-CUBLAS.
  MatmulDescriptors(const CublasLt& library, const MatmulProblem& problem, const void* bias, Device device);

  cublasLtMatmulDescOpaque_t product;
  cublasLtMatrixLayoutOpaque_t a, b, d;
};

/// What an algorithm for the problem has to keep to. Throws E-CUBLAS.
cublasLtMatmulPreferenceOpaque_t matmul_preference(const CublasLt& library, const MatmulProblem& problem,
                                                   Device device);

}  // namespace gradus::cuda
