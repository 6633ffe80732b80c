#include <gradus/backends/cuda/matmul_problem.h>

#include <algorithm>

namespace gradus::cuda {
namespace {

using Matrix = MatmulProblem::Matrix;

uint32_t alignment_of(const void* address) {
  const auto bits = reinterpret_cast<uintptr_t>(address);
  return static_cast<uint32_t>(std::min<uintptr_t>(256, bits ? bits & (~bits + 1) : 256));
}

// Of a batch of row-major matrices (rows, columns), one of whose strides is 1. Stored row by row, each is the
// column-major matrix that the product wants; stored column by column, that one's transpose. cuBLASLt wants
// columns at least `rows` elements apart, also where there is only one and its stride can be anything.
Matrix transposed(const TensorArg& t) {
  const int64_t rows = t.sizes[1], columns = t.sizes[2];
  Matrix m{};
  if ((t.strides[2] == 1 || columns == 1) && (t.strides[1] >= columns || rows == 1)) {
    m = {.rows = columns, .columns = rows, .leading = rows == 1 ? columns : t.strides[1], .op = CUBLAS_OP_N};
  } else {
    m = {.rows = rows, .columns = columns, .leading = columns == 1 ? rows : t.strides[2], .op = CUBLAS_OP_T};
  }
  m.batch_stride = t.sizes[0] == 1 ? 0 : t.strides[0];
  m.alignment = alignment_of(t.address);
  return m;
}

cudaDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return CUDA_R_16F;
    case DType::bfloat16:
      return CUDA_R_16BF;
    case DType::float64:
      return CUDA_R_64F;
    default:
      return CUDA_R_32F;
  }
}

cublasComputeType_t compute_type(DType dtype, MatmulPrecision precision) {
  if (dtype == DType::float64) return CUBLAS_COMPUTE_64F;
  const bool tf32 = dtype == DType::float32 && precision != MatmulPrecision::highest;
  return tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

cublasLtMatrixLayoutOpaque_t layout(const CublasLt& lt, const MatmulProblem& p, const Matrix& m,
                                    Device device) {
  cublasLtMatrixLayoutOpaque_t out{};
  check(lt,
        lt.cublasLtMatrixLayoutInit_internal(&out, sizeof out, p.type, static_cast<uint64_t>(m.rows),
                                             static_cast<uint64_t>(m.columns), m.leading),
        "cublasLtMatrixLayoutInit", device);
  const auto set = [&](cublasLtMatrixLayoutAttribute_t attribute, const auto& value) {
    check(lt, lt.cublasLtMatrixLayoutSetAttribute(&out, attribute, &value, sizeof value),
          "cublasLtMatrixLayoutSetAttribute", device);
  };
  set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, p.batch);
  set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, m.batch_stride);
  return out;
}

}  // namespace

MatmulProblem matmul_problem(const MatmulArgs& args, MatmulPrecision precision, size_t workspace) {
  const DType dtype = args.y.dtype;
  return {.a = transposed(args.b),
          .b = transposed(args.a),
          .d = transposed(args.y),
          .batch = static_cast<int32_t>(args.y.sizes[0]),
          .type = type_of(dtype),
          .scale_type = dtype == DType::float64 ? CUDA_R_64F : CUDA_R_32F,
          .compute = compute_type(dtype, precision),
          .bias_alignment = args.bias.present() ? alignment_of(args.bias.address) : 0,
          .workspace = workspace};
}

MatmulDescriptors::MatmulDescriptors(const CublasLt& lt, const MatmulProblem& p, const void* bias,
                                     Device device)
    : product{}, a(layout(lt, p, p.a, device)), b(layout(lt, p, p.b, device)), d(layout(lt, p, p.d, device)) {
  check(lt, lt.cublasLtMatmulDescInit_internal(&product, sizeof product, p.compute, p.scale_type),
        "cublasLtMatmulDescInit", device);
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    check(lt, lt.cublasLtMatmulDescSetAttribute(&product, attribute, &value, sizeof value),
          "cublasLtMatmulDescSetAttribute", device);
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, p.a.op);
  set(CUBLASLT_MATMUL_DESC_TRANSB, p.b.op);
  if (p.bias_alignment > 0) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);  // the choice of an algorithm looks at its alignment
  }
}

cublasLtMatmulPreferenceOpaque_t matmul_preference(const CublasLt& lt, const MatmulProblem& p,
                                                   Device device) {
  cublasLtMatmulPreferenceOpaque_t out{};
  check(lt, lt.cublasLtMatmulPreferenceInit_internal(&out, sizeof out), "cublasLtMatmulPreferenceInit",
        device);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    check(lt, lt.cublasLtMatmulPreferenceSetAttribute(&out, attribute, &value, sizeof value),
          "cublasLtMatmulPreferenceSetAttribute", device);
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, p.workspace);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, p.a.alignment);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, p.b.alignment);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, p.d.alignment);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, p.d.alignment);
  // Parts of a sum are kept in float32, not in y's type, and added in a fixed order.
  const uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions);
  return out;
}

}  // namespace gradus::cuda
