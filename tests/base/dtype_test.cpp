#include <gradus/base/dtype.h>
#include <gtest/gtest.h>

#include <string>
#include <type_traits>

namespace gradus {
namespace {

constexpr DType kAll[] = {kUInt8, kInt32, kInt64, kBool, kFloat16, kBFloat16, kFloat32, kFloat64};

// torch.promote_types for all pairs, in the order of kAll.
TEST(DType, promotion_is_pytorchs) {
  constexpr DType u8 = kUInt8, i32 = kInt32, i64 = kInt64, b = kBool, f16 = kFloat16, bf = kBFloat16,
                  f32 = kFloat32, f64 = kFloat64;
  const DType table[8][8] = {
      {u8, i32, i64, u8, f16, bf, f32, f64},    // uint8
      {i32, i32, i64, i32, f16, bf, f32, f64},  // int32
      {i64, i64, i64, i64, f16, bf, f32, f64},  // int64
      {u8, i32, i64, b, f16, bf, f32, f64},     // bool
      {f16, f16, f16, f16, f16, f32, f32, f64}, {bf, bf, bf, bf, f32, bf, f32, f64},
      {f32, f32, f32, f32, f32, f32, f32, f64}, {f64, f64, f64, f64, f64, f64, f64, f64}};
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j)
      EXPECT_EQ(promote_types(kAll[i], kAll[j]), table[i][j])
          << to_string(kAll[i]) << " " << to_string(kAll[j]);
}

TEST(DType, properties) {
  const struct {
    DType dtype;
    const char* name;
    size_t size;
    bool floating, integral;
  } rows[] = {{kUInt8, "uint8", 1, false, true},     {kInt32, "int32", 4, false, true},
              {kInt64, "int64", 8, false, true},     {kBool, "bool", 1, false, false},
              {kFloat16, "float16", 2, true, false}, {kBFloat16, "bfloat16", 2, true, false},
              {kFloat32, "float32", 4, true, false}, {kFloat64, "float64", 8, true, false}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_STREQ(to_string(row.dtype), row.name);
    EXPECT_EQ(element_size(row.dtype), row.size);
    EXPECT_EQ(is_floating_point(row.dtype), row.floating);
    EXPECT_EQ(is_integral(row.dtype), row.integral);
    EXPECT_EQ(kFloatingTypes.has(row.dtype), row.floating);
    EXPECT_EQ(kIntegralTypes.has(row.dtype), row.integral);
    EXPECT_TRUE(kAllTypes.has(row.dtype));
  }
}

TEST(DType, visit_gives_the_element_type) {
  for (const DType d : kAll) {
    const auto [dtype, size] = visit_dtype(d, [](auto tag) {
      using T = typename decltype(tag)::type;
      return std::pair(dtype_of<T>(), sizeof(T));
    });
    EXPECT_EQ(dtype, d);
    EXPECT_EQ(size, element_size(d));
  }
}

TEST(DType, visit_refuses_what_is_not_in_the_set) {
  try {
    visit_dtype<dtypes(kFloat32, kFloat64)>(kInt64, [](auto) {});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "E-INTERNAL");
    EXPECT_STREQ(e.what(), "internal: visit_dtype on dtype 2, which is not in {float32, float64}");
  }
}

TEST(DType, sets) {
  EXPECT_EQ(to_string(dtypes()), "");
  EXPECT_EQ(to_string(dtypes(kBool, kFloat16)), "bool, float16");
  EXPECT_FALSE(kNumericTypes.has(kBool));
}

static_assert(std::is_same_v<ComputeType<Half>, float> && std::is_same_v<ComputeType<BFloat16>, float>);
static_assert(std::is_same_v<ComputeType<double>, double> && std::is_same_v<ComputeType<int64_t>, int64_t>);

}  // namespace
}  // namespace gradus
