#include <gradus/ops/factories.h>
#include <gtest/gtest.h>

namespace gradus {
namespace {

std::vector<double> values(const Tensor& t) { return t.to_vector<double>(); }
using Doubles = std::vector<double>;

TEST(Factories, literals_have_the_dtype_of_what_is_written) {
  EXPECT_EQ(tensor({1, 2}).dtype(), kInt64);
  EXPECT_EQ(tensor({1.f, 2.f}).dtype(), kFloat32);
  EXPECT_EQ(tensor({1.0, 2.0}).dtype(), kFloat32);
  EXPECT_EQ(tensor({true, false}).dtype(), kBool);
  EXPECT_EQ(tensor(3.0).dtype(), kFloat32);
  EXPECT_EQ(tensor(3).dtype(), kInt64);
  EXPECT_EQ(tensor(3.0).dim(), 0);
  EXPECT_EQ(tensor({{1, 2, 3}, {4, 5, 6}}).sizes(), (Shape{2, 3}));
  EXPECT_EQ(values(tensor({{1, 2, 3}, {4, 5, 6}})), (Doubles{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(values(tensor({true, false, true})), (Doubles{1, 0, 1}));
}

TEST(Factories, options_override_the_dtype_and_lose_no_digit) {
  EXPECT_EQ(tensor({0.1}, {.dtype = kFloat64}).item<double>(), 0.1);
  EXPECT_EQ(tensor({1, 2}, {.dtype = kFloat16}).dtype(), kFloat16);
  EXPECT_EQ(tensor({1, 2}, {.device = Device()}).dtype(), kInt64);
  EXPECT_TRUE(tensor({1.0}, {.requires_grad = true}).requires_grad());
  EXPECT_THROW(tensor({1}, {.requires_grad = true}), Error);
  EXPECT_EQ(tensor({int64_t{9007199254740993}}).item<int64_t>(), 9007199254740993);
}

TEST(Factories, vectors_keep_their_type) {
  EXPECT_EQ(tensor(std::vector<double>{0.1}).dtype(), kFloat64);
  EXPECT_EQ(tensor(std::vector<uint8_t>{1, 2}, Shape{2, 1}).sizes(), (Shape{2, 1}));
  EXPECT_EQ(values(tensor(std::vector<bool>{true, false})), (Doubles{1, 0}));
  EXPECT_EQ(tensor(std::vector<float>{}).sizes(), (Shape{0}));
}

TEST(Factories, wrong_shapes_are_refused) {
  try {
    tensor({{1, 2}, {3}});
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "tensor: expected sequence of length 2 at dim 1 (got 1)");
  }
  try {
    tensor(std::vector<float>{1, 2, 3}, Shape{2, 2});
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "tensor: shape [2, 2] needs 4 values, got 3");
  }
  EXPECT_THROW(zeros({-1}), Error);
  EXPECT_THROW(zeros({int64_t{1} << 40, int64_t{1} << 40}), Error);
}

TEST(Factories, full_takes_the_numbers_kind) {
  EXPECT_EQ(full({2}, 1).dtype(), kInt64);
  EXPECT_EQ(full({2}, 1.0).dtype(), kFloat32);
  EXPECT_EQ(full({2}, true).dtype(), kBool);
  EXPECT_EQ(values(full({2, 2}, 7, {.dtype = kFloat64})), (Doubles{7, 7, 7, 7}));
  EXPECT_EQ(zeros({2}).dtype(), kFloat32);
  EXPECT_EQ(values(ones({3}, kInt32)), (Doubles{1, 1, 1}));
  EXPECT_EQ(zeros({2, 0}).numel(), 0);
}

TEST(Factories, like_keeps_dtype_and_memory_order) {
  const Tensor x = zeros({2, 3, 4, 4}, {.dtype = kFloat64, .memory_format = MemoryFormat::channels_last});
  const Tensor y = ones_like(x);
  EXPECT_EQ(y.strides(), x.strides());
  EXPECT_EQ(y.dtype(), kFloat64);
  EXPECT_EQ(values(full_like(tensor({1, 2}), 5)), (Doubles{5, 5}));
  EXPECT_EQ(x.new_ones({2}).dtype(), kFloat64);
  EXPECT_EQ(values(x.new_full({2}, 3)), (Doubles{3, 3}));
}

TEST(Factories, arange) {
  EXPECT_EQ(values(arange(4)), (Doubles{0, 1, 2, 3}));
  EXPECT_EQ(arange(4).dtype(), kInt64);
  EXPECT_EQ(arange(4.0).dtype(), kFloat32);
  EXPECT_EQ(values(arange(1, 8, 3)), (Doubles{1, 4, 7}));
  EXPECT_EQ(values(arange(5, 0, -2)), (Doubles{5, 3, 1}));
  EXPECT_EQ(values(arange(0, 1, 0.25)), (Doubles{0, 0.25, 0.5, 0.75}));
  EXPECT_EQ(arange(3, 3).numel(), 0);
  EXPECT_EQ(arange(4, {.dtype = kFloat16}).dtype(), kFloat16);
  EXPECT_EQ(arange(100000).to_vector<int64_t>()[99999], 99999);
  EXPECT_THROW(arange(0, 3, -1), Error);
  EXPECT_THROW(arange(0, 3, 0), Error);
}

TEST(Factories, linspace_hits_both_ends) {
  EXPECT_EQ(values(linspace(0, 1, 5)), (Doubles{0, 0.25, 0.5, 0.75, 1}));
  const Tensor x = linspace(-0.1, 0.3, 7, {.dtype = kFloat64});
  EXPECT_EQ(x[0].item<double>(), -0.1);
  EXPECT_EQ(x[6].item<double>(), 0.3);
  EXPECT_EQ(values(linspace(2, 3, 1)), (Doubles{2}));
  EXPECT_EQ(linspace(2, 3, 0).numel(), 0);
}

TEST(Factories, eye) {
  EXPECT_EQ(values(eye(3)), (Doubles{1, 0, 0, 0, 1, 0, 0, 0, 1}));
  EXPECT_EQ(eye(0).sizes(), (Shape{0, 0}));
}

}  // namespace
}  // namespace gradus
