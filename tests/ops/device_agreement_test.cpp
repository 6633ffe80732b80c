// What sums, or has a layout of its own on a device, gives the CPU's numbers at any shape. (op_case.h
// compares each operation with a reference in double, at shapes that somebody chose.)
#include <gradus/gradus.h>
#include <gtest/gtest.h>
#include <support/devices.h>

#include <cmath>

namespace gradus {
namespace {

struct Draw {
  Device device;
  uint64_t n;
};
void PrintTo(const Draw& draw, std::ostream* out) { *out << to_string(draw.device) << " draw " << draw.n; }

std::vector<Draw> draws() {
  std::vector<Draw> all;
  for (const Device device : testing::devices_with_queues())
    for (uint64_t n = 0; n < 12; ++n) all.push_back({device, n});
  return all;
}

class DeviceAgreement : public ::testing::TestWithParam<Draw> {
 protected:
  DeviceAgreement() { manual_seed(100 + GetParam().n); }

  int64_t size(int64_t most) { return randint(most, {1}).item<int64_t>() + 1; }
  // [a, b, c] of random sizes, each third draw long in one, in a random order in memory.
  Tensor draw_tensor() {
    const uint64_t n = GetParam().n;
    const Tensor x = randn({size(9), n % 3 == 0 ? size(6000) : size(90), n % 2 == 0 ? 1 : size(40)});
    return n % 4 < 2 ? x : x.transpose(n % 4 == 2 ? 0 : 2, 1);
  }
  // f of the operands on the CPU and on the device: results and gradients.
  template <class F>
  void check(const Tensor& x, const F& f, double tolerance = 1e-5) {
    const Tensor want = x.detach().requires_grad_(), got = x.detach().to(device_).requires_grad_();
    const Tensor y = f(want), z = f(got);
    expect_same(z, y, tolerance);
    if (!y.requires_grad()) return;
    const Tensor dy = randn(y.sizes());
    y.backward(dy);
    z.backward(dy.to(device_));
    expect_same(got.grad(), want.grad(), tolerance);
  }
  static void expect_same(const Tensor& got, const Tensor& want, double tolerance) {
    ASSERT_EQ(got.sizes(), want.sizes());
    const std::vector<double> g = got.to_vector<double>(), w = want.to_vector<double>();
    for (size_t i = 0; i < w.size(); ++i) {
      if (std::isnan(w[i]) && std::isnan(g[i])) continue;
      const double error = std::abs(g[i] - w[i]) / std::max(1.0, std::abs(w[i]));
      ASSERT_TRUE(error <= tolerance) << "element " << i << ": " << g[i] << ", on the CPU " << w[i];
    }
  }
  Device device_ = GetParam().device;
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DeviceAgreement);
INSTANTIATE_TEST_SUITE_P(random_shapes, DeviceAgreement, ::testing::ValuesIn(draws()), [](const auto& info) {
  return to_string(info.param.device.type()) + std::string("_") + std::to_string(info.param.n);
});

TEST_P(DeviceAgreement, reductions) {
  const Tensor x = draw_tensor();
  const double of_sums = 1e-5 + 2e-6 * std::sqrt(static_cast<double>(x.numel()));
  for (const Dims& dims : {Dims{0}, Dims{1}, Dims{2}, Dims{0, 2}, Dims{1, 2}, Dims{}}) {
    check(
        x, [&](const Tensor& t) { return sum(t, dims); }, of_sums);
    check(x, [&](const Tensor& t) { return mean(t, dims); });
    check(x, [&](const Tensor& t) { return norm(t, 2, dims); });
    check(
        x, [&](const Tensor& t) { return amax(t, dims); }, 0);
    check(
        round(x * 2), [&](const Tensor& t) { return sum(t.detach().to(kInt64), dims); }, 0);
  }
}

TEST_P(DeviceAgreement, places_of_extrema_with_ties) {
  const Tensor x = round(draw_tensor() * 2);
  for (const int64_t dim : {0, 1, 2}) {
    check(
        x, [&](const Tensor& t) { return argmax(t, dim); }, 0);
    check(
        x, [&](const Tensor& t) { return std::get<0>(min(t, dim)); }, 0);
  }
  check(
      x, [](const Tensor& t) { return argmin(t); }, 0);
}

TEST_P(DeviceAgreement, softmax_and_cumsum) {
  const Tensor x = draw_tensor();
  for (const int64_t dim : {0, 1, 2}) {
    check(x, [&](const Tensor& t) { return softmax(t, dim); });
    check(
        x, [&](const Tensor& t) { return log_softmax(t, dim); }, 1e-4);
    check(
        x, [&](const Tensor& t) { return cumsum(t, dim); }, 1e-4);
  }
}

TEST_P(DeviceAgreement, layer_norm) {
  const Tensor x = draw_tensor(), flat = x.reshape({-1, x.size(2)});
  const Tensor rows = cat({flat, randn({flat.size(0), 3})}, 1);
  check(
      rows, [&](const Tensor& t) { return layer_norm(t, {t.size(1)}); }, 1e-4);
  const Tensor w = randn({rows.size(1)}), b = randn({rows.size(1)});
  check(
      w, [&](const Tensor& t) { return layer_norm(rows.to(t.device()), {w.size(0)}, t, b.to(t.device())); },
      1e-4);
}

TEST_P(DeviceAgreement, cross_entropy) {
  const Tensor x = draw_tensor(), weight = rand({x.size(1)}) + 0.5;
  Tensor target = randint(x.size(1), {x.size(0), x.size(2)});
  target = target.masked_fill(rand(target.sizes()) < 0.2, -100);
  for (const Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::none}) {
    check(
        x,
        [&](const Tensor& t) {
          const Device device = t.device();
          return cross_entropy(t, target.to(device),
                               {.weight = weight.to(device),
                                .reduction = reduction,
                                .label_smoothing = GetParam().n % 2 == 0 ? 0 : 0.1});
        },
        1e-4);
    check(x, [&](const Tensor& t) { return nll_loss(t, target.to(t.device()), {.reduction = reduction}); });
  }
}

TEST_P(DeviceAgreement, losses_of_pairs) {
  const Tensor x = draw_tensor(), other = randn(x.sizes());
  for (const Reduction reduction : {Reduction::mean, Reduction::none})
    check(x, [&](const Tensor& t) { return huber_loss(t, other.to(t.device()), {.reduction = reduction}); });
}

// More parameters than a launch takes, of odd sizes, one of them at an address that fits no pack.
TEST_P(DeviceAgreement, optimizers) {
  const auto trained = [](Device device, bool adam) {
    manual_seed(5);
    std::vector<Tensor> params;
    for (int64_t i = 0; i < 27; ++i) {
      const Tensor x = randn({i * i * 11 + 2}).to(device);
      params.push_back((i == 20 ? x.narrow(0, 1, x.numel() - 1) : x).detach().requires_grad_());
    }
    optim::AdamW adamw(params, {.lr = 0.1});
    optim::SGD sgd(params, {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true});
    for (int step = 0; step < 3; ++step) {
      Tensor loss = zeros({}, kFloat32, device);
      for (const Tensor& p : params) loss = loss + (p * p * p).sum();
      adamw.zero_grad();
      loss.backward();
      adam ? adamw.step() : sgd.step();
    }
    return cat(params).detach();
  };
  for (const bool adam : {true, false}) expect_same(trained(device_, adam), trained(Device(), adam), 1e-5);
}

}  // namespace
}  // namespace gradus
