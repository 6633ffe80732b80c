// Type promotion, stated once as a table. tests/golden compares all pairs with PyTorch.
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/cat.h>
#include <gradus/ops/factories.h>
#include <gtest/gtest.h>

namespace gradus {
namespace {

constexpr DType kOrder[] = {kBool, kUInt8, kInt32, kInt64, kFloat16, kBFloat16, kFloat32, kFloat64};

TEST(Promotion, of_two_tensors_is_the_higher_of_the_two) {
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j) {
      const bool halves = (kOrder[i] == kFloat16 && kOrder[j] == kBFloat16) ||
                          (kOrder[i] == kBFloat16 && kOrder[j] == kFloat16);
      const DType wanted = halves ? kFloat32 : kOrder[std::max(i, j)];
      EXPECT_EQ(promote_types(kOrder[i], kOrder[j]), wanted)
          << to_string(kOrder[i]) << " and " << to_string(kOrder[j]);
      if (wanted != kBool) {
        EXPECT_EQ((ones({2}, kOrder[i]) + ones({2}, kOrder[j])).dtype(), wanted);
        EXPECT_EQ(cat({ones({2}, kOrder[i]), ones({2}, kOrder[j])}).dtype(), wanted);
      }
    }
}

struct NumberCase {
  DType tensor;
  Scalar number;
  DType wanted;
};

TEST(Promotion, a_number_only_raises_the_category) {
  const NumberCase cases[] = {
      {kUInt8, 1, kUInt8},       {kUInt8, 1.5, kFloat32},   {kInt64, true, kInt64},
      {kInt64, 0.5, kFloat32},   {kFloat16, 1, kFloat16},   {kFloat16, 1.5, kFloat16},
      {kBFloat16, 2, kBFloat16}, {kFloat64, 1.5, kFloat64}, {kFloat32, 1e300, kFloat32},
      {kBool, 2, kInt64},        {kBool, 2.5, kFloat32},
  };
  for (const NumberCase& c : cases)
    EXPECT_EQ((ones({2}, c.tensor) * c.number).dtype(), c.wanted) << to_string(c.tensor);
}

TEST(Promotion, a_zero_dim_tensor_counts_as_a_number_of_its_category) {
  EXPECT_EQ((ones({2}, kFloat16) + ones({}, kFloat64)).dtype(), kFloat16);
  EXPECT_EQ((ones({2}, kInt32) + ones({}, kInt64)).dtype(), kInt32);
  EXPECT_EQ((ones({2}, kInt32) + ones({}, kFloat16)).dtype(), kFloat16);
  EXPECT_EQ((ones({}, kFloat16) + ones({}, kFloat64)).dtype(), kFloat64);
}

TEST(Promotion, in_place_keeps_the_dtype_or_refuses) {
  Tensor x = ones({2}, kInt64);
  EXPECT_THROW(x.add_(ones({2})), Error);
  EXPECT_THROW(x.mul_(0.5), Error);
  EXPECT_EQ(x.to_vector<int64_t>(), (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(ones({2}).add_(ones({2}, kFloat64)).dtype(), kFloat32);
}

TEST(Promotion, gradients_come_back_in_the_inputs_dtype) {
  Tensor half = ones({2}, kFloat16).requires_grad_(), wide = ones({2}, kFloat32).requires_grad_();
  (half * wide).backward(ones({2}));
  EXPECT_EQ(half.grad().dtype(), kFloat16);
  EXPECT_EQ(wide.grad().dtype(), kFloat32);
}

}  // namespace
}  // namespace gradus
