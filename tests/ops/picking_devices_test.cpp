// What is written by index on a device is what the CPU writes, also where indices repeat: the last one wins,
// sums have one order. Shapes are such that each way of a GPU (ops/picking.h, backends/cuda/pick.cu) is gone.
#include <gradus/gradus.h>
#include <gtest/gtest.h>
#include <support/devices.h>

namespace gradus {
namespace {

class PickingOnDevice : public ::testing::TestWithParam<Device> {
 protected:
  PickingOnDevice() { manual_seed(11); }
  // f of tensors moved to the device and of the same on the CPU.
  template <class F, class... X>
  void check(const F& f, const X&... x) {
    const Tensor want = f(x...), got = f(x.to(GetParam())...), again = f(x.to(GetParam())...);
    ASSERT_EQ(got.sizes(), want.sizes());
    const auto w = want.template to_vector<double>(), g = got.template to_vector<double>();
    for (size_t i = 0; i < w.size(); ++i)
      ASSERT_TRUE(std::abs(g[i] - w[i]) <= 1e-5 * std::max(1.0, std::abs(w[i])))
          << "element " << i << ": " << g[i] << ", on the CPU " << w[i];
    EXPECT_EQ(again.template to_vector<double>(), g);
  }
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PickingOnDevice);
INSTANTIATE_TEST_SUITE_P(all, PickingOnDevice, ::testing::ValuesIn(testing::devices_with_queues()),
                         [](const auto& info) { return std::string(to_string(info.param.type())); });

TEST_P(PickingOnDevice, rows_of_a_table_and_their_gradient) {
  const Tensor table = randn({70, 8}), index = randint(70, {40, 10}), dy = randn({40, 10, 8});
  check([](const Tensor& t, const Tensor& i) { return embedding(t, i); }, table, index);
  const auto gradient = [](const Tensor& t, const Tensor& i, const Tensor& g) {
    const Tensor x = t.detach().requires_grad_();
    embedding(x, i).backward(g);
    return x.grad();
  };
  check(gradient, table, index, dy);
  check(gradient, table, index.slice(0, 0, 3), dy.slice(0, 0, 3));
  check(gradient, table, zeros({40, 10}, kInt64), dy);
  check(gradient, table, index, dy.transpose(0, 1).contiguous().transpose(0, 1));
  check(gradient, table.to(kFloat16), index, dy.to(kFloat16));
}

TEST_P(PickingOnDevice, additions_to_a_vector) {
  const auto add = [](const Tensor& x, const Tensor& i, const Tensor& v) { return index_add(x, 0, i, v); };
  for (const int64_t bins : {int64_t{1}, int64_t{3}, int64_t{500}, int64_t{100000}}) {
    const Tensor index = randint(bins, {7000});
    check(add, randn({bins}, kFloat64), index, randn({7000}, kFloat64));
    check(add, randint(9, {bins}), index, randint(9, {7000}));
    check(add, randint(9, {bins}).to(kUInt8), index, randint(99, {7000}).to(kUInt8));
  }
}

TEST_P(PickingOnDevice, one_element_or_many_of_each_row) {
  const auto add = [](const Tensor& x, const Tensor& i, const Tensor& v) { return scatter_add(x, 1, i, v); };
  const auto move = [](const Tensor& x, const Tensor& i, const Tensor& v) { return scatter(x, 1, i, v); };
  for (const Shape& shape : {Shape{3000, 1}, Shape{2100, 70}, Shape{9, 700}}) {
    const Tensor index = randint(5, shape), v = randn(shape), x = randn({shape[0], 5});
    check(add, x, index, v);
    check(move, x, index, v);
    check(move, x, index.t().contiguous().t(), v);
  }
}

TEST_P(PickingOnDevice, the_last_of_repeated_indices_wins) {
  const auto put = [](const Tensor& x, const Tensor& i, const Tensor& j, const Tensor& v) {
    Tensor y = x.clone();
    y.index_put_({i, j}, v);
    return y;
  };
  for (const int64_t n : {20, 3000})
    check(put, randn({6, 4, 3}), randint(6, {n}), randint(4, {n}), randn({n, 3}));
  const auto rows = [](const Tensor& x, const Tensor& i, const Tensor& v) {
    Tensor y = x.clone();
    y.index_put_({i}, v);
    return y;
  };
  check(rows, randint(2, {9, 31}).to(kBool), randint(9, {800}), randint(2, {800, 31}).to(kBool));
}

TEST_P(PickingOnDevice, picked_columns_and_planes) {
  const Tensor x = randn({5, 40, 6}), index = randint(40, {33});
  const auto pick = [](const Tensor& t, const Tensor& i) { return index_select(t, 1, i); };
  for (const DType dtype : {kBool, kFloat16, kFloat32, kFloat64}) check(pick, x.to(dtype), index);
  check([](const Tensor& t, const Tensor& i) { return index_select(t, 2, i); }, x, randint(6, {9}));
  check([](const Tensor& t, const Tensor& i) { return gather(t, 1, i); }, x, randint(40, {4, 50, 5}));
  check(pick, x.transpose(0, 2), index);
  check(pick, x.slice(2, 1, 6), index);
}

}  // namespace
}  // namespace gradus
