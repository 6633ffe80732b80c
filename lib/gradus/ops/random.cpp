#include "kernels/random.cuh"

#include <gradus/ops/common.h>
#include <gradus/ops/copy.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/random.h>

#include <limits>

namespace gradus {

using detail::finish;
using detail::make;

namespace {

constexpr auto kUniform =
    KernelTable<RandomArgs>("uniform").everywhere<kernels::UniformKernel, kFloatingTypes>();
constexpr auto kNormal =
    KernelTable<RandomArgs>("normal").everywhere<kernels::NormalKernel, kFloatingTypes>();
constexpr auto kRandint =
    KernelTable<RandomIntArgs>("randint").everywhere<kernels::RandomIntKernel, kNumericTypes>();

struct Range {
  int64_t least, most;
};
template <class T>
constexpr Range range_of() {
  return {std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
}

// The integers that a dtype holds, though a floating one may round them.
Range range_of(DType dtype) {
  if (dtype == kUInt8) return range_of<uint8_t>();
  if (dtype == kInt32) return range_of<int32_t>();
  if (dtype == kFloat16) return {-65504, 65504};
  return range_of<int64_t>();
}

// Up to here it holds every one: a floating dtype has 2^bits of its significand.
int64_t exact_up_to(DType dtype) {
  switch (dtype) {
    case DType::boolean:
      return 1;
    case DType::float16:
      return int64_t{1} << 11;
    case DType::bfloat16:
      return int64_t{1} << 8;
    case DType::float32:
      return int64_t{1} << 24;
    case DType::float64:
      return int64_t{1} << 53;
    default:
      return range_of(dtype).most;
  }
}

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
  const DType dtype = options.dtype.value_or(kInt64);
  const auto [least, most] = range_of(dtype);
  GRADUS_CHECK(low >= least && high - 1 <= most, "E-ARG", "randint: numbers from ", low, " to ", high - 1,
               " do not fit ", to_string(dtype), ", which holds ", least, " to ", most,
               hint("give another dtype, such as kInt64"));
  Tensor t = make(sizes, DType::int64, options);
  const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  launch(kRandint, t.dtype(), ops::stream_of(t), RandomIntArgs{t.arg(), generator.reserve(), low, range});
  return finish(t, options);
}

Tensor randperm(int64_t n, const TensorOptions& options, Generator& generator) {
  GRADUS_CHECK(n >= 0, "E-ARG", "randperm: n must be non-negative, got ", n);
  const DType dtype = options.dtype.value_or(kInt64);
  GRADUS_CHECK(n - 1 <= exact_up_to(dtype), "E-ARG", "randperm: the numbers 0 to ", n - 1, " do not fit ",
               to_string(dtype), ", which holds 0 to ", exact_up_to(dtype), " exactly",
               hint("give another dtype, such as kInt64"));
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
