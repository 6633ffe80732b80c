#include <gradus/ops/arithmetic.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/random.h>
#include <gradus/ops/view.h>
#include <gradus/tensor/node.h>

#include <cmath>

#include "shaping.h"
#include "support/expect_error.h"

namespace gradus::optest {
namespace {

// The matrices of a batch; a 1-D operand is a row on the left and a column on the right.
struct Operand {
  Shape batch;
  int64_t rows, columns;
};
Operand operand(const Shape& s, bool left) {
  if (s.size() == 1) return left ? Operand{{}, 1, s[0]} : Operand{{}, s[0], 1};
  Operand o{s, s[s.size() - 2], s[s.size() - 1]};
  o.batch.erase(o.batch.size() - 1);
  o.batch.erase(o.batch.size() - 1);
  return o;
}

RefArray matmul_reference(const RefArrays& x) {
  const Operand a = operand(x[0].sizes, true), b = operand(x[1].sizes, false);
  const Shape batch = broadcast_shapes(a.batch, b.batch, "matmul");
  Shape sizes = batch;
  if (x[0].sizes.size() > 1) sizes.push_back(a.rows);
  if (x[1].sizes.size() > 1) sizes.push_back(b.columns);
  RefArray y(sizes);
  for (int64_t i = 0; i < y.numel(); ++i) {
    const int64_t matrix = i / (a.rows * b.columns), row = i / b.columns % a.rows, column = i % b.columns;
    const int64_t in_a = broadcast_index(matrix, batch, a.batch) * a.rows * a.columns;
    const int64_t in_b = broadcast_index(matrix, batch, b.batch) * b.rows * b.columns;
    for (int64_t k = 0; k < a.columns; ++k)
      y[i] += x[0][in_a + row * a.columns + k] * x[1][in_b + k * b.columns + column];
  }
  return y;
}

RefArray linear_reference(const RefArrays& x) {
  const int64_t in = x[1].sizes[1], out = x[1].sizes[0];
  Shape sizes = x[0].sizes;
  sizes[sizes.size() - 1] = out;
  RefArray y(sizes);
  for (int64_t i = 0; i < y.numel(); ++i) {
    y[i] = x.size() > 2 ? x[2][i % out] : 0;
    for (int64_t k = 0; k < in; ++k) y[i] += x[0][i / out * in + k] * x[1][i % out * in + k];
  }
  return y;
}

// Sums of up to 40 products of normal numbers: their parts are larger than they are.
constexpr double kSums = 32;

GRADUS_OP_CASES(matmul,
                OpCase{.name = "matmul",
                       .shapes = {{{3}, {3}},
                                  {{2, 3}, {3}},
                                  {{3}, {3, 2}},
                                  {{2, 3}, {3, 4}},
                                  {{1, 1}, {1, 1}},
                                  {{7, 17}, {17, 9}},
                                  {{2, 2, 3}, {3, 2}},
                                  {{2, 2, 3}, {2, 3, 1}},
                                  {{2, 1, 2, 3}, {3, 3, 2}},
                                  {{3}, {2, 3, 2}},
                                  {{2, 2, 3}, {3}},
                                  {{0, 3}, {3, 2}},
                                  {{2, 0}, {0, 3}},
                                  {{0, 2, 3}, {3, 2}},
                                  {{2, 3}, {3, 0}}},
                       .inputs = {{}, {}},
                       .forward = [](const Tensors& x) { return matmul(x[0], x[1]); },
                       .reference = matmul_reference,
                       .tolerance = kSums,
                       .gradient_tolerance = kSums},
                OpCase{.name = "linear",
                       .shapes = {{{4, 3}, {2, 3}, {2}},
                                  {{3}, {2, 3}, {2}},
                                  {{2, 2, 5}, {3, 5}, {3}},
                                  {{1, 1}, {1, 1}, {1}},
                                  {{0, 3}, {2, 3}, {2}},
                                  {{5, 40}, {19, 40}, {19}}},
                       .inputs = {{}, {}, {}},
                       .forward = [](const Tensors& x) { return linear(x[0], x[1], x[2]); },
                       .reference = linear_reference,
                       .tolerance = kSums,
                       .gradient_tolerance = kSums},
                OpCase{.name = "linear_without_bias",
                       .shapes = {{{4, 3}, {2, 3}}, {{2, 2, 5}, {3, 5}}},
                       .inputs = {{}, {}},
                       .forward = [](const Tensors& x) { return linear(x[0], x[1]); },
                       .reference = linear_reference,
                       .tolerance = kSums,
                       .gradient_tolerance = kSums});

// The library's product against the reference, at sizes that leave every kind of remainder.
TEST(Matmul, large_products_of_every_dtype_and_orientation) {
  for (DType dtype : {kFloat16, kBFloat16, kFloat32, kFloat64}) {
    // Half types are added up in float32 and rounded once; the others add up 129 rounding errors.
    const bool half = dtype == kFloat16 || dtype == kBFloat16;
    const double eps = dtype == kFloat16    ? 0x1p-10
                       : dtype == kBFloat16 ? 0x1p-7
                       : dtype == kFloat32  ? 0x1p-23
                                            : 0x1p-52;
    const Tensor a = randn({67, 129}, {.dtype = dtype}), b = randn({129, 35}, {.dtype = dtype});
    const RefArray want = matmul_reference({values_of(a), values_of(b)});
    const Tensor a_columns = a.t().contiguous().t(), b_columns = b.t().contiguous().t();
    for (const Tensor& left : {a, a_columns})
      for (const Tensor& right : {b, b_columns}) {
        const RefArray got = values_of(matmul(left, right));
        for (int64_t i = 0; i < want.numel(); ++i)
          ASSERT_TRUE(std::fabs(got[i] - want[i]) <= eps * (half ? std::fabs(want[i]) + 1e-3 : 4 * 129))
              << to_string(dtype) << " element " << i << ": " << got[i] << ", expected " << want[i];
      }
  }
}

TEST(Matmul, a_repeated_matrix_is_not_copied_wrongly) {
  const Tensor a = randn({3, 40, 50}), b = randn({50, 60});
  const Tensor y = bmm(a, b.expand({3, 50, 60}));
  for (int64_t i = 0; i < 3; ++i) {
    const RefArray got = values_of(y[i]), want = matmul_reference({values_of(a[i]), values_of(b)});
    for (int64_t k = 0; k < want.numel(); ++k) ASSERT_TRUE(std::fabs(got[k] - want[k]) <= 1e-5 * 8);
  }
}

TEST(Matmul, NUM_21_a_sum_of_nothing_is_zero) {
  EXPECT_EQ(matmul(ones({2, 0}), ones({0, 3})).to_vector<float>(), std::vector<float>(6, 0));
  Tensor x = zeros({0, 3}), w = ones({2, 3}).requires_grad_(), b = ones({2}).requires_grad_();
  const Tensor y = linear(x, w, b);
  EXPECT_EQ(y.sizes(), (Shape{0, 2}));
  y.sum().backward();
  EXPECT_EQ(w.grad().to_vector<float>(), std::vector<float>(6, 0));
  EXPECT_EQ(b.grad().to_vector<float>(), std::vector<float>(2, 0));
  // Nothing to add up: the bias is all that is left.
  EXPECT_EQ(linear(zeros({2, 0}), zeros({2, 0}), ones({2})).to_vector<float>(), std::vector<float>(4, 1));
}

TEST(Matmul, names_what_is_wrong) {
  using ::gradus::testing::error_of;
  EXPECT_EQ(
      error_of([] {
        matmul(zeros({2, 3}), zeros({2, 3}));
      }),
      "E-SHAPE: matmul: mat1 and mat2 shapes cannot be multiplied ([2, 3] and [2, 3]): 3 columns against 2 "
      "rows\n  hint: one operand may need .t() or flatten()");
  EXPECT_EQ(
      error_of([] {
        linear(zeros({2, 4}), zeros({2, 3}));
      }),
      "E-SHAPE: linear: input of shape [2, 4] does not fit a weight of shape [2, 3]: its last size must be "
      "3\n  hint: flatten the input, or change in_features");
  EXPECT_GRADUS_ERROR(matmul(zeros({}), zeros({2})), "E-SHAPE", "0-D and 1-D");
  EXPECT_GRADUS_ERROR(mm(zeros({2}), zeros({2, 2})), "E-SHAPE", "[2] and [2, 2]");
  EXPECT_GRADUS_ERROR(bmm(zeros({2, 2, 2}), zeros({3, 2, 2})), "E-SHAPE", "[2, 2, 2] and [3, 2, 2]");
  EXPECT_GRADUS_ERROR(matmul(zeros({2, 2}), zeros({2, 2}, kFloat64)), "E-DTYPE", "float32 and float64");
  EXPECT_GRADUS_ERROR(matmul(zeros({2, 2}, kInt64), zeros({2, 2}, kInt64)), "E-NOT-IMPLEMENTED", "int64");
  EXPECT_GRADUS_ERROR(matmul(zeros({2, 1, 3}), zeros({3, 3, 2})), "E-SHAPE", "matmul");
  EXPECT_GRADUS_ERROR(linear(zeros({2, 3}), zeros({2, 3}), zeros({3})), "E-SHAPE", "[2]");
}

TEST(Matmul, what_is_not_needed_is_not_kept) {
  const int64_t nodes = Node::live_count();
  {
    const Tensor x = randn({2, 3});
    Tensor w = randn({4, 3}).requires_grad_();
    linear(x, w).sum().backward();
    EXPECT_FALSE(x.grad().defined());
    EXPECT_EQ(w.grad().sizes(), (Shape{4, 3}));
  }
  EXPECT_EQ(Node::live_count(), nodes);
}

}  // namespace
}  // namespace gradus::optest
