// Element-wise operations and copies give every device's the CPU's numbers, bit for bit (base/math.h), at
// shapes and layouts that go each way of a GPU: vectors, single elements, tiles
// (kernels/elementwise_block.cuh).
#include <gradus/gradus.h>
#include <gtest/gtest.h>
#include <support/devices.h>

#include <limits>

namespace gradus {
namespace {

constexpr DType kEveryType[] = {kUInt8, kInt32, kInt64, kBool, kFloat16, kBFloat16, kFloat32, kFloat64};

class PointwiseOnDevice : public ::testing::TestWithParam<Device> {
 protected:
  PointwiseOnDevice() { manual_seed(3); }

  // f of the tensors moved to the device, and of the same on the CPU. A NaN equals a NaN.
  template <class F, class... X>
  void check(const F& f, const X&... x) {
    const Tensor want = f(x...), got = f(on_device(x)...);
    ASSERT_EQ(got.device(), GetParam());
    ASSERT_EQ(got.dtype(), want.dtype());
    ASSERT_EQ(got.sizes(), want.sizes());
    ASSERT_EQ(got.strides(), want.strides());
    const auto w = want.template to_vector<double>(), g = got.template to_vector<double>();
    for (size_t i = 0; i < w.size(); ++i)
      ASSERT_TRUE(g[i] == w[i] || (g[i] != g[i] && w[i] != w[i]))
          << "element " << i << " of " << want.sizes() << " " << want.dtype() << ": " << g[i]
          << ", on the CPU " << w[i];
  }
  // With the strides of x.
  Tensor on_device(const Tensor& x) const {
    Tensor y = empty_strided(x.sizes(), x.strides(), x.dtype(), GetParam());
    y.copy_(x);
    return y;
  }
  static Tensor draw(const Shape& sizes, DType dtype) {
    return (dtype == kBool ? randint(2, sizes) : randn(sizes) * 20).to(dtype);
  }
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PointwiseOnDevice);
INSTANTIATE_TEST_SUITE_P(all, PointwiseOnDevice, ::testing::ValuesIn(testing::devices_with_queues()),
                         [](const auto& info) { return std::string(to_string(info.param.type())); });

TEST_P(PointwiseOnDevice, between_all_dtypes) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  for (const DType from : kEveryType) {
    Tensor x = draw({7, 13}, from);
    if (is_floating_point(from))
      x = cat(
          {x.flatten(), tensor({inf, -inf, inf - inf, 3e9, -3e9, 1e19, -1e19, -1.0, 300.5, 0.0}).to(from)});
    for (const DType to : kEveryType) {
      check([to](const Tensor& t) { return t.to(to); }, x);
      if (x.dim() == 2) check([to](const Tensor& t) { return t.t().to(to); }, x);
      check([to](const Tensor& t) { return t.slice(0, 1, t.size(0), 2).to(to); }, x);
    }
  }
}

TEST_P(PointwiseOnDevice, layouts) {
  for (const DType dtype : {kUInt8, kBFloat16, kFloat32, kInt64}) {
    for (const Shape& sizes : {Shape{31, 33}, {64, 65}, {130, 17}, {3, 100}, {1, 9}}) {
      const Tensor x = draw(sizes, dtype);
      check([](const Tensor& t) { return t.t().contiguous(); }, x);
      check([](const Tensor& t) { return t.slice(1, 1, t.size(1)).clone(); }, x);
      check([](const Tensor& t) { return t.slice(1, 0, t.size(1), 3).clone(); }, x);
    }
    for (const int64_t channels : {3, 16, 40}) {
      const Tensor images = draw({2, channels, 6, 7}, dtype);
      check([](const Tensor& t) { return t.contiguous(MemoryFormat::channels_last); }, images);
      check([](const Tensor& t) { return t.contiguous(MemoryFormat::contiguous); },
            images.contiguous(MemoryFormat::channels_last));
    }
    check([](const Tensor& t) { return t.permute({2, 0, 1}).contiguous(); }, draw({20, 5, 33}, dtype));
  }
}

TEST_P(PointwiseOnDevice, into_parts_of_a_tensor) {
  for (const DType dtype : {kUInt8, kFloat16, kFloat32, kFloat64}) {
    const Tensor x = draw({12, 16}, dtype), row = draw({5}, kFloat32);
    for (const int64_t begin : {0, 1, 4}) {
      const auto changed = [&](const auto& change) {
        return [&](const Tensor& t, const auto&... more) {
          Tensor whole = t.clone(), part = whole.slice(1, begin, begin + 5);
          change(part, whole, more...);
          return whole;
        };
      };
      check(changed([](Tensor& y, const Tensor&) { y.fill_(7); }), x);
      check(changed([](Tensor& y, const Tensor&, const Tensor& r) { y.copy_(r); }), x, row);
      check(changed([](Tensor& y, const Tensor& all) { y.add_(all.slice(1, 10, 15)); }), x);
    }
  }
}

TEST_P(PointwiseOnDevice, choices_by_a_mask) {
  for (const DType dtype : kEveryType) {
    const Tensor a = draw({9, 16}, dtype), b = draw({16}, dtype), mask = draw({9, 16}, kBool),
                 rows = draw({9, 1}, kBool);
    check([](const Tensor& m, const Tensor& x, const Tensor& z) { return where(m, x, z); }, mask, a, b);
    check([](const Tensor& m, const Tensor& x, const Tensor& z) { return where(m, x.t(), z); }, rows,
          draw({16, 9}, dtype), draw({9, 16}, dtype));
    check([](const Tensor& x, const Tensor& m) { return masked_fill(x, m, 1); }, a, rows);
    check(
        [](const Tensor& x, const Tensor& m) { return masked_fill(x.slice(1, 1, 12), m.slice(1, 3, 14), 1); },
        a, mask);
  }
}

using Unary = Tensor (*)(const Tensor&);
TEST_P(PointwiseOnDevice, functions_have_the_same_bits) {
  const Unary functions[] = {exp,  expm1,      log, log1p, sqrt,  rsqrt, sin,   cos,   erf,  tanh, sigmoid,
                             silu, reciprocal, abs, neg,   floor, ceil,  round, trunc, sign, relu};
  constexpr double inf = std::numeric_limits<double>::infinity();
  for (const DType dtype : {kFloat32, kFloat16, kBFloat16}) {
    const Tensor x =
        cat({draw({2001}, dtype), tensor({inf, -inf, inf - inf, 0.0, -0.0, 1e-6, -1e-6, 1e5}).to(dtype)});
    for (const Unary f : functions) check(f, x);
    check([](const Tensor& t) { return gelu(t); }, x);
    check([](const Tensor& t) { return gelu(t, "tanh"); }, x);
    check([](const Tensor& t) { return softplus(t); }, x);
    check([](const Tensor& t) { return pow(t, 2.5); }, x);
  }
}

using Binary = Tensor (*)(const Tensor&, const Tensor&);
TEST_P(PointwiseOnDevice, operations_on_operands_of_any_shape) {
  const Binary operations[] = {add, sub, mul, div, maximum, minimum, lt, eq, pow, fmod, remainder};
  for (const DType dtype : {kUInt8, kInt32, kFloat16, kFloat32}) {
    const Shape shapes[][2] = {{{1003}, {1003}}, {{40, 24}, {24}}, {{40, 24}, {40, 1}},      {{24}, {40, 1}},
                               {{7, 5}, {}},     {{}, {7, 16}},    {{2, 8, 5, 5}, {8, 1, 1}}};
    for (const auto& [a, b] : shapes) {
      const Tensor x = draw(a, dtype), z = (abs(randn(b)) * 20 + 1).to(dtype);  // no divisor is 0
      for (const Binary f : operations) check(f, x, z);
    }
    const Tensor x = draw({33, 20}, dtype);
    check([](const Tensor& t) { return t.t() + t.slice(0, 0, 20).slice(1, 0, 1); }, x);
    check([](const Tensor& t, const Tensor& z) { return t.t() * z; }, x, draw({20, 33}, dtype));
  }
}

}  // namespace
}  // namespace gradus
