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

// Two tensors in one launch; the second is more than a chunk and lies at an address that fits no pack.
template <class T>
struct TwoTensors {
  static constexpr int64_t kLong = TensorChunks::kChunk + kCount;
  explicit TwoTensors(uint64_t salt)
      : first(random_vector<T>(kCount, salt)), second(static_cast<size_t>(kLong) + 1) {
    for (size_t i = 0; i < static_cast<size_t>(kLong); ++i)
      second[i + 1] = first[i % static_cast<size_t>(kCount)];
  }
  T* data(int i) { return i == 0 ? first.data() : second.data() + 1; }
  static TensorChunks chunks() {
    TensorChunks chunks;
    chunks.push_back(kCount);
    chunks.push_back(kLong);
    return chunks;
  }
  void expect(const std::vector<double>& want, double tolerance) const {
    expect_close(first, want, tolerance);
    const auto n = static_cast<std::ptrdiff_t>(kCount),
               last = static_cast<std::ptrdiff_t>(kLong / kCount - 1);
    const auto from = second.begin() + 1 + last * n;
    expect_close(std::vector<T>(from, from + n), want, tolerance);
  }
  std::vector<T> first, second;
};
// All zeros.
template <class T>
TwoTensors<T> two_zeros() {
  TwoTensors<T> t(0);
  std::fill(t.first.begin(), t.first.end(), T(0.0f));
  std::fill(t.second.begin(), t.second.end(), T(0.0f));
  return t;
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
    TwoTensors<T> p(0), m = two_zeros<T>(), v = two_zeros<T>();
    float steps[] = {0, 0};
    AdamUpdate<C> updates[2];
    for (int t = 1; t <= kSteps; ++t) {
      TwoTensors<T> grad(static_cast<uint64_t>(t));
      run(AdamPrepare<C>{{&steps[0], &steps[1]}, 2, &o.lr, update, updates});
      EXPECT_EQ(steps[1], static_cast<float>(t));
      AdamStep<T> body{};
      for (int i = 0; i < 2; ++i) body.items[i] = {p.data(i), grad.data(i), m.data(i), v.data(i), i == 0};
      body.chunks = TwoTensors<T>::chunks(), body.updates = updates;
      run(body);
    }
    p.expect(want, std::is_same_v<T, double> ? 1e-10 : drift<T>());
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
      TwoTensors<T> p(0), b = two_zeros<T>();
      const double lr = 0.1;
      for (int t = 0; t < kSteps; ++t) {
        TwoTensors<T> grad(static_cast<uint64_t>(t) + 1);
        SgdStep<T> body{};
        for (int i = 0; i < 2; ++i) body.items[i] = {p.data(i), grad.data(i), b.data(i), i == 0};
        body.chunks = TwoTensors<T>::chunks(), body.lr = &lr;
        body.update = SgdUpdate<C>{static_cast<C>(77),
                                   static_cast<C>(0.9),
                                   static_cast<C>(dampening),
                                   static_cast<C>(0.05),
                                   nesterov,
                                   t == 0};
        run(body);
      }
      p.expect(want, drift<T>());
    });
  }
}

TEST(OptimizerEdges, PlainSgdNeedsNoBuffer) {
  alignas(16) float p[] = {1, 2, 3, 4, 5};
  alignas(16) const float g[] = {10, -10, 0, 2, 4};
  const double lr = 0.5;
  SgdStep<float> body{};
  body.items[0] = {p, g, nullptr, true};
  body.chunks.push_back(0);  // a tensor of no elements has no chunk
  body.items[1] = body.items[0];
  body.chunks.push_back(5);
  body.lr = &lr;
  run_serial(body);
  EXPECT_EQ(std::vector<float>(p, p + 5), (std::vector<float>{-4, 7, 3, 3, 3}));
}

// A kernel's parameters may be 4 KB.
static_assert(sizeof(AdamStep<double>) < 4096 && sizeof(AdamPrepare<double>) < 4096);

}  // namespace
}  // namespace gradus::kernels
