#include "kernels/random.cuh"

#include <gradus/ops/common.h>
#include <gradus/ops/copy.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/random.h>

namespace gradus {

using detail::finish;
using detail::make;

namespace {

constexpr auto kUniform = KernelTable<RandomArgs>("uniform").host<kernels::UniformKernel, kFloatingTypes>();
constexpr auto kNormal = KernelTable<RandomArgs>("normal").host<kernels::NormalKernel, kFloatingTypes>();
constexpr auto kRandint =
    KernelTable<RandomIntArgs>("randint").host<kernels::RandomIntKernel, kNumericTypes>();

// Fills `x`, which nobody else has seen or whose in-place change was checked.
Tensor draw(const KernelTable<RandomArgs>& table, Tensor x, double a, double b, Generator& generator) {
  launch(table, x.dtype(), ops::stream_of(x), RandomArgs{x.arg(), generator.reserve(), a, b});
  return x;
}

}  // namespace

Tensor rand(const Shape& sizes, const TensorOptions& options, Generator& generator) {
  return finish(draw(kUniform, make(sizes, DType::float32, options), 0, 1, generator), options);
}
Tensor randn(const Shape& sizes, const TensorOptions& options, Generator& generator) {
  return finish(draw(kNormal, make(sizes, DType::float32, options), 0, 1, generator), options);
}
Tensor rand_like(const Tensor& like, Generator& generator) {
  return draw(kUniform, empty_like(like), 0, 1, generator);
}
Tensor randn_like(const Tensor& like, Generator& generator) {
  return draw(kNormal, empty_like(like), 0, 1, generator);
}

Tensor randint(int64_t low, int64_t high, const Shape& sizes, const TensorOptions& options,
               Generator& generator) {
  GRADUS_CHECK(low < high, "E-ARG",
               "randint: random_ expects 'from' to be less than 'to', but got from=", low, " >= to=", high);
  Tensor t = make(sizes, DType::int64, options);
  const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  launch(kRandint, t.dtype(), ops::stream_of(t), RandomIntArgs{t.arg(), generator.reserve(), low, range});
  return finish(t, options);
}

Tensor randperm(int64_t n, const TensorOptions& options, Generator& generator) {
  GRADUS_CHECK(n >= 0, "E-ARG", "randperm: n must be non-negative, got ", n);
  return tensor(random_permutation(n, generator), options);
}

Tensor bernoulli(const Tensor& p, Generator& generator) {
  NoGradGuard no_grad;
  return (rand_like(p, generator) < p).to(p.dtype());
}

Tensor uniform_(Tensor x, double from, double to, Generator& generator) {
  GRADUS_CHECK(from <= to, "E-ARG", "uniform_: expects to return a [from, to) range, but found from=", from,
               " > to=", to);
  check_inplace(x, "uniform");
  ops::overwritten(draw(kUniform, x, from, to, generator));
  return x;
}

Tensor normal_(Tensor x, double mean, double std, Generator& generator) {
  GRADUS_CHECK(std >= 0, "E-ARG", "normal_: expects std >= 0.0, but found std ", std);
  check_inplace(x, "normal");
  ops::overwritten(draw(kNormal, x, mean, std, generator));
  return x;
}

}  // namespace gradus
