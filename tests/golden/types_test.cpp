// Dtypes: promotion, integer division and conversion give what they give in PyTorch, to the last bit.
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/compare.h>
#include <gradus/ops/cumsum.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/index.h>
#include <gradus/ops/norm.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/rounding.h>
#include <gradus/ops/unary.h>

#include <algorithm>
#include <functional>
#include <sstream>

#include "golden.h"

namespace gradus::golden {
namespace {

// The dtypes in the order of the tables.
std::vector<DType> order() {
  static const std::map<std::string, DType> names = {
      {"bool", kBool},       {"uint8", kUInt8},       {"int32", kInt32},     {"int64", kInt64},
      {"float16", kFloat16}, {"bfloat16", kBFloat16}, {"float32", kFloat32}, {"float64", kFloat64}};
  std::istringstream words(file("types").metadata.at("order"));
  std::vector<DType> dtypes;
  for (std::string word; words >> word;) dtypes.push_back(names.at(word));
  return dtypes;
}

// The place in order() of the result's dtype; -1 where the operation refuses its operands.
int64_t place(const std::function<Tensor()>& op) {
  try {
    const DType got = op().dtype();
    const std::vector<DType> all = order();
    return std::find(all.begin(), all.end(), got) - all.begin();
  } catch (const Error&) {
    return -1;
  }
}

using Binary = Tensor (*)(const Tensor&, const Tensor&);

void check_pairs(const std::string& table, Binary op, const Shape& a_shape = {2},
                 const Shape& b_shape = {2}) {
  const std::vector<int64_t> wanted = file("types").at("promote/" + table).to_vector<int64_t>();
  const std::vector<DType> all = order();
  ASSERT_EQ(wanted.size(), all.size() * all.size());
  for (size_t row = 0; row < all.size(); ++row)
    for (size_t column = 0; column < all.size(); ++column)
      EXPECT_EQ(place([&] { return op(ones(a_shape, all[row]), ones(b_shape, all[column])); }),
                wanted[row * all.size() + column])
          << table << " of " << to_string(all[row]) << " and " << to_string(all[column]);
}

TEST(GoldenTypes, promotion_of_two_tensors) {
  check_pairs("add", [](const Tensor& a, const Tensor& b) { return add(a, b); });
  check_pairs("sub", [](const Tensor& a, const Tensor& b) { return sub(a, b); });
  check_pairs("mul", [](const Tensor& a, const Tensor& b) { return mul(a, b); });
  check_pairs("div", [](const Tensor& a, const Tensor& b) { return div(a, b); });
  check_pairs("floor_divide", [](const Tensor& a, const Tensor& b) { return floor_divide(a, b); });
  check_pairs("eq", [](const Tensor& a, const Tensor& b) { return eq(a, b); });
}

TEST(GoldenTypes, a_zero_dim_tensor_yields_within_its_category) {
  check_pairs("add_zero_dim", [](const Tensor& a, const Tensor& b) { return add(a, b); }, {2}, {});
  check_pairs("add_both_zero_dim", [](const Tensor& a, const Tensor& b) { return add(a, b); }, {}, {});
}

using Unary = Tensor (*)(const Tensor&);

void check_row(const int64_t* wanted, Unary op, const std::string& what) {
  const std::vector<DType> all = order();
  for (size_t k = 0; k < all.size(); ++k)
    EXPECT_EQ(place([&] { return op(ones({2}, all[k])); }), wanted[k]) << what << " of " << to_string(all[k]);
}

TEST(GoldenTypes, promotion_with_a_number) {
  const std::vector<int64_t> wanted = file("types").at("promote/scalar").to_vector<int64_t>();
  const std::vector<Unary> ops = {
      [](const Tensor& t) { return t + true; }, [](const Tensor& t) { return t + 1; },
      [](const Tensor& t) { return t + 1.5; },  [](const Tensor& t) { return t * 2; },
      [](const Tensor& t) { return t / 2; },    [](const Tensor& t) { return floor_divide(t, 2); }};
  const size_t width = order().size();
  ASSERT_EQ(wanted.size(), ops.size() * width);
  for (size_t row = 0; row < ops.size(); ++row)
    check_row(&wanted[row * width], ops[row], "row " + std::to_string(row));
}

TEST(GoldenTypes, dtype_of_unary_results) {
  const std::map<std::string, Unary> ops = {{"sum", [](const Tensor& t) { return sum(t); }},
                                            {"prod", [](const Tensor& t) { return prod(t); }},
                                            {"mean", [](const Tensor& t) { return mean(t); }},
                                            {"cumsum", [](const Tensor& t) { return cumsum(t, 0); }},
                                            {"exp", [](const Tensor& t) { return exp(t); }},
                                            {"sqrt", [](const Tensor& t) { return sqrt(t); }},
                                            {"abs", [](const Tensor& t) { return abs(t); }},
                                            {"neg", [](const Tensor& t) { return neg(t); }}};
  for (const auto& [name, op] : ops)
    check_row(file("types").at("unary/" + name).to_vector<int64_t>().data(), op, name);
}

// Same dtype and same values: 0 for floats means equal, with NaN equal to NaN.
void expect_same(const Tensor& got, const std::string& name) {
  const Tensor& wanted = file("types").at(name);
  EXPECT_EQ(to_string(got.dtype()), to_string(wanted.dtype())) << name;
  EXPECT_TRUE(close(got, wanted, 0)) << name;
}

TEST(GoldenTypes, NUM_17_division_and_remainder_of_every_sign) {
  const std::map<std::string, Binary> ops = {
      {"floor_divide", [](const Tensor& a, const Tensor& b) { return floor_divide(a, b); }},
      {"trunc_divide", [](const Tensor& a, const Tensor& b) { return div(a, b, Rounding::trunc); }},
      {"remainder", [](const Tensor& a, const Tensor& b) { return remainder(a, b); }},
      {"fmod", [](const Tensor& a, const Tensor& b) { return fmod(a, b); }},
      {"div", [](const Tensor& a, const Tensor& b) { return div(a, b); }}};
  for (const std::string dtype : {"int64", "int32", "uint8", "float32"}) {
    const std::string prefix = "division/" + dtype + "/";
    for (const auto& [name, op] : ops)
      expect_same(op(file("types").at(prefix + "a"), file("types").at(prefix + "b")), prefix + name);
  }
}

TEST(GoldenTypes, integers_take_no_road_through_floats) {
  const Tensor& x = file("types").at("int64/x");
  expect_same(x + 0, "int64/plus_zero");
  expect_same(x * 3, "int64/times_three");
  expect_same(sum(x), "int64/sum");
}

TEST(GoldenTypes, bytes_wrap_around) {
  const Tensor& x = file("types").at("uint8/x");
  expect_same(x + x, "uint8/plus");
  expect_same(x * x, "uint8/times");
  expect_same(neg(x), "uint8/neg");
  expect_same(sum(x), "uint8/sum");
  const Tensor reversed = index_select(x, 0, tensor(std::vector<int64_t>{5, 4, 3, 2, 1, 0}));
  expect_same(x - reversed, "uint8/minus");
}

TEST(GoldenTypes, conversion_between_all_dtypes) {
  const std::vector<std::string> names = {"bool",    "uint8",    "int32",   "int64",
                                          "float16", "bfloat16", "float32", "float64"};
  const std::vector<DType> all = order();
  for (const std::string& source : names)
    for (size_t k = 0; k < names.size(); ++k)
      expect_same(file("types").at("convert/" + source).to(all[k]), "convert/" + source + "/" + names[k]);
}

TEST(GoldenTypes, rounding_to_half_types) {
  const Tensor& x = file("types").at("round/float32");
  expect_same(x.to(kFloat16), "round/float16");
  expect_same(x.to(kBFloat16), "round/bfloat16");
}

}  // namespace
}  // namespace gradus::golden
