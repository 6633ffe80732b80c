#include <gradus/base/scalar.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace gradus {
namespace {

TEST(Scalar, keeps_the_kind_and_the_value) {
  EXPECT_EQ(Scalar(0.5f).kind(), kFloat64);
  EXPECT_EQ(Scalar(2).kind(), kInt64);
  EXPECT_EQ(Scalar(uint8_t{2}).kind(), kInt64);
  EXPECT_EQ(Scalar(true).kind(), kBool);
  EXPECT_EQ(Scalar().to<int>(), 0);
  EXPECT_EQ(Scalar(0.1).to<double>(), 0.1);
  EXPECT_EQ(Scalar(true).to<double>(), 1.0);
  EXPECT_EQ(Scalar(-3).to<float>(), -3.0f);
  const int64_t big = std::numeric_limits<int64_t>::max();  // a double would round it
  EXPECT_EQ(Scalar(big).to<int64_t>(), big);
}

// The dtype of torch.ones(2, dtype=t) + number, for 1.5, 2 and True.
TEST(Scalar, promotion_is_pytorchs) {
  const struct {
    DType tensor, with_double, with_int, with_bool;
  } rows[] = {{kUInt8, kFloat32, kUInt8, kUInt8},       {kInt32, kFloat32, kInt32, kInt32},
              {kInt64, kFloat32, kInt64, kInt64},       {kBool, kFloat32, kInt64, kBool},
              {kFloat16, kFloat16, kFloat16, kFloat16}, {kBFloat16, kBFloat16, kBFloat16, kBFloat16},
              {kFloat32, kFloat32, kFloat32, kFloat32}, {kFloat64, kFloat64, kFloat64, kFloat64}};
  for (const auto& row : rows) {
    SCOPED_TRACE(to_string(row.tensor));
    EXPECT_EQ(promote_with_scalar(row.tensor, Scalar(1.5).kind()), row.with_double);
    EXPECT_EQ(promote_with_scalar(row.tensor, Scalar(2).kind()), row.with_int);
    EXPECT_EQ(promote_with_scalar(row.tensor, Scalar(true).kind()), row.with_bool);
  }
}

}  // namespace
}  // namespace gradus
