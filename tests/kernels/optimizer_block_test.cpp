#include <kernels/optimizer_block.cuh>

#include "kernels/kernel_testing.h"

namespace gradus::kernels {
namespace {

constexpr int64_t kCount = 37;
constexpr int kSteps = 4;

template <class T>
struct OptimizerKernel : ::testing::Test {};
TYPED_TEST_SUITE(OptimizerKernel, FloatingTypes);

// The half types round parameter and state at each step, which the double reference does not.
template <class T>
constexpr double drift() {
  return 6 * tolerance_of<T>();
}

struct AdamOptions {
  double lr, weight_decay;
  bool decoupled;
};

template <class T>
std::vector<double> adam_reference(const AdamOptions& o) {
  std::vector<double> p, m(kCount), v(kCount);
  for (const T x : random_vector<T>(kCount)) p.push_back(static_cast<double>(x));
  for (int t = 1; t <= kSteps; ++t) {
    const auto grad = random_vector<T>(kCount, static_cast<uint64_t>(t));
    for (size_t i = 0; i < p.size(); ++i) {
      double g = static_cast<double>(grad[i]);
      if (o.decoupled)
        p[i] -= o.lr * o.weight_decay * p[i];
      else
        g += o.weight_decay * p[i];
      m[i] = 0.9 * m[i] + 0.1 * g;
      v[i] = 0.99 * v[i] + 0.01 * g * g;
      const double m_hat = m[i] / (1 - std::pow(0.9, t)), v_hat = v[i] / (1 - std::pow(0.99, t));
      p[i] -= o.lr * m_hat / (std::sqrt(v_hat) + 1e-8);
    }
  }
  return p;
}

template <class T>
void check_adam(const AdamOptions& o) {
  using C = ComputeType<T>;
  AdamUpdate<C> update{};
  update.lr = static_cast<C>(77);  // replaced by the value on the device
  update.beta1 = 0.9;
  update.beta2 = 0.99;
  update.eps = static_cast<C>(1e-8);
  update.weight_decay = static_cast<C>(o.weight_decay);
  update.decoupled_weight_decay = o.decoupled;
  const auto want = adam_reference<T>(o);
  on_all_blocks<AdamStep<T>>([&](Runner run) {
    auto p = random_vector<T>(kCount);
    std::vector<T> m(kCount), v(kCount);
    const C lr = static_cast<C>(o.lr);
    for (int t = 1; t <= kSteps; ++t) {
      const auto grad = random_vector<T>(kCount, static_cast<uint64_t>(t));
      const C step = static_cast<C>(t);
      run(AdamStep<T>{p.data(), grad.data(), m.data(), v.data(), kCount, update, &lr, &step});
    }
    expect_close(p, want, std::is_same_v<T, double> ? 1e-10 : drift<T>());
  });
}

TYPED_TEST(OptimizerKernel, Adam) { check_adam<TypeParam>({0.01, 0.1, false}); }
TYPED_TEST(OptimizerKernel, AdamW) { check_adam<TypeParam>({0.01, 0.1, true}); }

TYPED_TEST(OptimizerKernel, SgdWithMomentum) {
  using T = TypeParam;
  using C = ComputeType<T>;
  for (const bool nesterov : {false, true}) {
    const double dampening = nesterov ? 0 : 0.3;
    std::vector<double> want, buffer(kCount);
    for (const T x : random_vector<T>(kCount)) want.push_back(static_cast<double>(x));
    for (int t = 0; t < kSteps; ++t) {
      const auto grad = random_vector<T>(kCount, static_cast<uint64_t>(t) + 1);
      for (size_t i = 0; i < want.size(); ++i) {
        const double g = static_cast<double>(grad[i]) + 0.05 * want[i];
        buffer[i] = t == 0 ? g : 0.9 * buffer[i] + (1 - dampening) * g;
        want[i] -= 0.1 * (nesterov ? g + 0.9 * buffer[i] : buffer[i]);
      }
    }
    on_all_blocks<SgdStep<T>>([&](Runner run) {
      auto p = random_vector<T>(kCount);
      std::vector<T> b(kCount);
      for (int t = 0; t < kSteps; ++t) {
        const auto grad = random_vector<T>(kCount, static_cast<uint64_t>(t) + 1);
        const SgdUpdate<C> update{static_cast<C>(0.1),
                                  static_cast<C>(0.9),
                                  static_cast<C>(dampening),
                                  static_cast<C>(0.05),
                                  nesterov,
                                  t == 0};
        run(SgdStep<T>{p.data(), grad.data(), b.data(), kCount, update, nullptr});
      }
      expect_close(p, want, drift<T>());
    });
  }
}

TEST(OptimizerEdges, PlainSgdNeedsNoBuffer) {
  std::vector<float> p{1, 2};
  const std::vector<float> g{10, -10};
  const float lr = 0.5f;
  run_serial(SgdStep<float>{p.data(), g.data(), nullptr, 2, {0.25f}, &lr});
  EXPECT_EQ(p, (std::vector<float>{-4, 7}));
}

}  // namespace
}  // namespace gradus::kernels
