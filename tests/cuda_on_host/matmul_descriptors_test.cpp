// The descriptors of matrix products, read back from NVIDIA's cuBLASLt (which needs no GPU for that) and from
// its stand-in.
#include <gradus/backends/cuda/matmul_problem.h>
#include <gtest/gtest.h>

#include <optional>

namespace gradus::cuda {
namespace {

using Matrix = MatmulProblem::Matrix;

TensorArg matrices(const Shape& sizes, const Shape& strides, DType dtype = DType::float32,
                   uintptr_t address = 4096) {
  return {reinterpret_cast<void*>(address), 1, sizes, strides, dtype};
}
TensorArg row_major(const Shape& sizes, DType dtype = DType::float32, uintptr_t address = 4096) {
  return matrices(sizes, contiguous_strides(sizes), dtype, address);
}

MatmulProblem problem(const MatmulArgs& args, MatmulPrecision precision = MatmulPrecision::highest) {
  return matmul_problem(args, precision, 1 << 20);
}

TEST(MatmulDescriptors, row_major_matrices_are_the_transposed_product) {
  const MatmulProblem p = problem({row_major({1, 2, 3}), row_major({1, 3, 4}), {}, row_major({1, 2, 4})});
  EXPECT_EQ(p.a, (Matrix{4, 3, 4, 0, CUBLAS_OP_N, 256}));
  EXPECT_EQ(p.b, (Matrix{3, 2, 3, 0, CUBLAS_OP_N, 256}));
  EXPECT_EQ(p.d, (Matrix{4, 2, 4, 0, CUBLAS_OP_N, 256}));
  EXPECT_EQ(p.batch, 1);
  EXPECT_EQ(p.bias_alignment, 0u);
}

TEST(MatmulDescriptors, column_major_matrices_are_transposed_not_copied) {
  const MatmulProblem p =
      problem({matrices({1, 2, 3}, {0, 1, 2}), matrices({1, 3, 4}, {0, 1, 5}), {}, row_major({1, 2, 4})});
  EXPECT_EQ(p.a, (Matrix{3, 4, 5, 0, CUBLAS_OP_T, 256}));
  EXPECT_EQ(p.b, (Matrix{2, 3, 2, 0, CUBLAS_OP_T, 256}));
}

TEST(MatmulDescriptors, strides_of_batches_and_rows) {
  const MatmulProblem p =
      problem({matrices({5, 2, 3}, {0, 7, 1}), matrices({5, 3, 4}, {100, 9, 1}), {}, row_major({5, 2, 4})});
  EXPECT_EQ(p.a, (Matrix{4, 3, 9, 100, CUBLAS_OP_N, 256}));
  EXPECT_EQ(p.b, (Matrix{3, 2, 7, 0, CUBLAS_OP_N, 256}));  // one matrix for all
  EXPECT_EQ(p.d.batch_stride, 8);
  EXPECT_EQ(p.batch, 5);
}

// cuBLASLt refuses columns closer than their length even where there is one column.
TEST(MatmulDescriptors, a_single_row_or_column_has_a_leading_dimension_all_the_same) {
  for (const int64_t m : {1, 5})
    for (const int64_t k : {1, 6})
      for (const int64_t n : {1, 7})
        for (const int64_t odd : {1, 3})  // the stride of a single element can be anything
          for (const bool columns : {false, true}) {
            const auto strides = [&](int64_t rows, int64_t cols) {
              Shape s = columns ? Shape{0, 1, rows} : Shape{0, cols, 1};
              if (rows == 1) s[1] = odd;
              if (cols == 1) s[2] = odd;
              return s;
            };
            const MatmulProblem p = problem({matrices({1, m, k}, strides(m, k)),
                                             matrices({1, k, n}, strides(k, n)),
                                             {},
                                             row_major({1, m, n})});
            for (const Matrix& x : {p.a, p.b, p.d}) EXPECT_GE(x.leading, x.rows);
            EXPECT_EQ(p.a.op == CUBLAS_OP_N ? p.a.rows : p.a.columns, n);
            EXPECT_EQ(p.b.op == CUBLAS_OP_N ? p.b.columns : p.b.rows, m);
            EXPECT_EQ(p.a.op == CUBLAS_OP_N ? p.a.columns : p.a.rows, k);
            EXPECT_EQ(p.b.op == CUBLAS_OP_N ? p.b.rows : p.b.columns, k);
          }
}

TEST(MatmulDescriptors, leading_dimensions_beyond_32_bits) {
  const int64_t far = (int64_t{1} << 33) + 4;
  const MatmulProblem p =
      problem({matrices({1, 2, 3}, {0, far, 1}), row_major({1, 3, 4}), {}, row_major({1, 2, 4})});
  EXPECT_EQ(p.b.leading, far);
}

TEST(MatmulDescriptors, alignment_is_the_address_own) {
  const MatmulProblem p =
      problem({row_major({1, 2, 3}, DType::float32, 4100), row_major({1, 3, 4}, DType::float32, 4112),
               row_major({4}, DType::float32, 8), row_major({1, 2, 4})});
  EXPECT_EQ(p.b.alignment, 4u);
  EXPECT_EQ(p.a.alignment, 16u);
  EXPECT_EQ(p.d.alignment, 256u);
  EXPECT_EQ(p.bias_alignment, 8u);
}

TEST(MatmulDescriptors, types_and_the_precision_of_float32) {
  const auto of = [](DType d, MatmulPrecision precision) {
    return problem({row_major({1, 2, 3}, d), row_major({1, 3, 4}, d), {}, row_major({1, 2, 4}, d)},
                   precision);
  };
  using enum MatmulPrecision;
  EXPECT_EQ(of(DType::float32, highest).compute, CUBLAS_COMPUTE_32F);
  EXPECT_EQ(of(DType::float32, high).compute, CUBLAS_COMPUTE_32F_FAST_TF32);
  EXPECT_EQ(of(DType::float32, medium).compute, CUBLAS_COMPUTE_32F_FAST_TF32);
  for (const auto& [dtype, type] :
       {std::pair(DType::float16, CUDA_R_16F), std::pair(DType::bfloat16, CUDA_R_16BF)}) {
    EXPECT_EQ(of(dtype, high).compute, CUBLAS_COMPUTE_32F);
    EXPECT_EQ(of(dtype, high).scale_type, CUDA_R_32F);
    EXPECT_EQ(of(dtype, high).type, type);
  }
  EXPECT_EQ(of(DType::float64, high).compute, CUBLAS_COMPUTE_64F);
  EXPECT_EQ(of(DType::float64, high).scale_type, CUDA_R_64F);
  EXPECT_EQ(of(DType::float64, high).type, CUDA_R_64F);
}

// What can be asked of either library.
class MatmulReadback : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (std::string(GetParam()) == "stand_in") {
      library_ = cublaslt();
      return;
    }
    const LibraryFacts found = find_cublas(CUBLAS_VER_MAJOR);
    if (found.major != CUBLAS_VER_MAJOR)
      GTEST_SKIP() << "no cuBLAS " << CUBLAS_VER_MAJOR << " on this machine";
    library_ = load_cublaslt(found);
  }
  template <class T>
  T of(cublasLtMatrixLayoutOpaque_t layout, cublasLtMatrixLayoutAttribute_t what) const {
    T value{};
    EXPECT_EQ(library_.cublasLtMatrixLayoutGetAttribute(&layout, what, &value, sizeof value, nullptr),
              CUBLAS_STATUS_SUCCESS);
    return value;
  }
  template <class T>
  T of(cublasLtMatmulDescOpaque_t product, cublasLtMatmulDescAttributes_t what) const {
    T value{};
    EXPECT_EQ(library_.cublasLtMatmulDescGetAttribute(&product, what, &value, sizeof value, nullptr),
              CUBLAS_STATUS_SUCCESS);
    return value;
  }
  void expect_layout(const cublasLtMatrixLayoutOpaque_t& got, const Matrix& want,
                     const MatmulProblem& p) const {
    EXPECT_EQ(of<uint32_t>(got, CUBLASLT_MATRIX_LAYOUT_TYPE), static_cast<uint32_t>(p.type));
    EXPECT_EQ(of<uint64_t>(got, CUBLASLT_MATRIX_LAYOUT_ROWS), static_cast<uint64_t>(want.rows));
    EXPECT_EQ(of<uint64_t>(got, CUBLASLT_MATRIX_LAYOUT_COLS), static_cast<uint64_t>(want.columns));
    EXPECT_EQ(of<int64_t>(got, CUBLASLT_MATRIX_LAYOUT_LD), want.leading);
    EXPECT_EQ(of<int32_t>(got, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT), p.batch);
    EXPECT_EQ(of<int64_t>(got, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET), want.batch_stride);
  }
  CublasLt library_;
};

TEST_P(MatmulReadback, what_was_described) {
  for (const DType dtype : {DType::float16, DType::bfloat16, DType::float32, DType::float64})
    for (const bool bias : {false, true}) {
      const TensorArg vector = bias ? row_major({4}, dtype, 512) : TensorArg{};
      const MatmulProblem p =
          problem({matrices({5, 2, 3}, {6, 1, 2}, dtype), matrices({5, 3, 4}, {0, 1, 6}, dtype), vector,
                   row_major({5, 2, 4}, dtype)},
                  MatmulPrecision::high);
      const MatmulDescriptors d(library_, p, vector.address, Device(DeviceType::cuda));
      expect_layout(d.a, p.a, p);
      expect_layout(d.b, p.b, p);
      expect_layout(d.d, p.d, p);
      EXPECT_EQ(of<cublasComputeType_t>(d.product, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE), p.compute);
      EXPECT_EQ(of<cudaDataType_t>(d.product, CUBLASLT_MATMUL_DESC_SCALE_TYPE), p.scale_type);
      EXPECT_EQ(of<cublasOperation_t>(d.product, CUBLASLT_MATMUL_DESC_TRANSA), CUBLAS_OP_T);
      EXPECT_EQ(of<cublasOperation_t>(d.product, CUBLASLT_MATMUL_DESC_TRANSB), CUBLAS_OP_T);
      EXPECT_EQ(of<uint32_t>(d.product, CUBLASLT_MATMUL_DESC_EPILOGUE),
                static_cast<uint32_t>(bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT));
      EXPECT_EQ(of<const void*>(d.product, CUBLASLT_MATMUL_DESC_BIAS_POINTER), vector.address);
    }
}

TEST_P(MatmulReadback, a_preference_is_taken) {
  const MatmulProblem p = problem({row_major({1, 2, 3}), row_major({1, 3, 4}), {}, row_major({1, 2, 4})});
  EXPECT_NO_THROW(matmul_preference(library_, p, Device(DeviceType::cuda)));
}

INSTANTIATE_TEST_SUITE_P(MatmulDescriptors, MatmulReadback, ::testing::Values("stand_in", "nvidia"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace gradus::cuda
