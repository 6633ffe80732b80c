// One OpCase says what an operation should compute; the checks below do the rest, on every device there is.
//
// How to write one (tests/ops/x_test.cpp):
//
//   GRADUS_OP_CASES(unary,
//       OpCase{.name = "log",
//              .shapes = pointwise_shapes(1),                  // a list of shapes per run, one per input
//              .inputs = {{uniform(0.1, 3)}},                  // how each input is drawn
//              .forward = [](const Tensors& x) { return log(x[0]); },
//              .reference = pointwise([](double x) { return std::log(x); })},
//       OpCase{…});
//
// Checked: the result against `reference` for each of `dtypes`; the gradient against finite differences in
// double, and in the other floating dtypes against double; the second derivative, or its refusal where
// `twice_differentiable` is false; the same with transposed, sliced, channels-last and offset inputs and with
// strided and expanded incoming gradients; that no Node outlives the check. All of it at each entry of
// `shapes`: give empty and size-1 shapes there. An operation with several results has a case for each. Draw
// inputs away from kinks and ties, for finite differences see only smooth functions.
#pragma once
#include <gradus/base/dtype.h>
#include <gradus/base/shape.h>
#include <gradus/tensor/tensor.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <type_traits>
#include <vector>

namespace gradus::optest {

using Tensors = std::vector<Tensor>;

/// The values of a tensor as doubles, row-major: what references compute with.
struct RefArray {
  Shape sizes;
  std::vector<double> values;

  RefArray() = default;
  explicit RefArray(const Shape& shape, double value = 0)
      : sizes(shape), values(static_cast<size_t>(shape.numel()), value) {}
  int64_t numel() const { return sizes.numel(); }
  double& operator[](int64_t i) { return values[static_cast<size_t>(i)]; }
  double operator[](int64_t i) const { return values[static_cast<size_t>(i)]; }
  /// The element at an index of sizes.size() entries; at({}) of a 0-dim array.
  double& at(const Shape& index);
  double at(const Shape& index) const;
};
using RefArrays = std::vector<RefArray>;

/// How an input's values are drawn; the same ones in every run.
struct Draw {
  enum class Kind { normal, uniform, integers, distinct } kind = Kind::normal;
  double low = 0, high = 0;
  std::vector<double> kinks = {};  // values keep a distance of 0.1 from these
  DType dtype = kFloat32;          // a floating one stands for the dtype of the run

  Draw away_from(std::vector<double> points) const;
};
/// Standard normal.
Draw normal();
/// Uniform in [low, high).
Draw uniform(double low, double high);
/// Different values between -1 and 1, in random order: no ties, at up to 100 elements in any dtype.
Draw distinct();
/// Whole numbers low … high-1 in a floating tensor, or in one of `dtype`: indices, targets.
Draw integers(int64_t low, int64_t high, DType dtype = kInt64);
/// True or false.
Draw booleans();

struct Input {
  Draw values = normal();
  /// False for one that gets no gradient. Integer and bool inputs never get one.
  bool differentiable = true;
};

struct OpCase {
  std::string name;
  std::vector<std::vector<Shape>> shapes;
  std::vector<Input> inputs;
  std::function<Tensor(const Tensors&)> forward;
  std::function<RefArray(const RefArrays&)> reference;
  /// Dtypes of the floating inputs. Integer ones (neg, abs …) are checked forward only.
  DTypeSet dtypes = kFloatingTypes;
  /// Largest error in units of max(1, |expected|) times the dtype's epsilon; of the gradient too.
  double tolerance = 4, gradient_tolerance = 16;
  bool twice_differentiable = true;
  /// False for operations that refuse channels-last inputs.
  bool channels_last = true;
};

/// Runs all checks of one case on one device; one line for each thing that is wrong.
std::vector<std::string> failures(const OpCase& c, Device device);

/// f(a), f(a, b) … of broadcast elements, as an OpCase's reference.
template <class F>
std::function<RefArray(const RefArrays&)> pointwise(F f);
/// n inputs of one shape, in turn 2-D, 4-D, 0-dim, empty and with dimensions of size 1; for n > 1 also
/// broadcasting ones.
std::vector<std::vector<Shape>> pointwise_shapes(int n);

/// The values of any tensor, in row-major order.
RefArray values_of(const Tensor& tensor);
/// A tensor of these values.
Tensor tensor_of(const RefArray& values, DType dtype, Device device = {});

/// What GRADUS_OP_CASES instantiates.
struct Run {
  OpCase op;
  Device device;
};
void PrintTo(const Run& run, std::ostream* out);
class OpTest : public ::testing::TestWithParam<Run> {};
std::vector<Run> on_every_device(const std::vector<OpCase>& cases);
std::string run_name(const ::testing::TestParamInfo<Run>& info);

#define GRADUS_OP_CASES(family, ...)                                                              \
  INSTANTIATE_TEST_SUITE_P(family, OpTest,                                                        \
                           ::testing::ValuesIn(::gradus::optest::on_every_device({__VA_ARGS__})), \
                           ::gradus::optest::run_name)

// ---------------------------------------------------------------------------------------------------------

/// Where element `i` (row-major, in `sizes`) of a broadcast result is found in an array of shape `of`.
int64_t broadcast_index(int64_t i, const Shape& sizes, const Shape& of);
Shape broadcast_all(const RefArrays& arrays);

template <class F>
std::function<RefArray(const RefArrays&)> pointwise(F f) {
  return [f](const RefArrays& x) {
    RefArray y(broadcast_all(x));
    auto element = [&](size_t k, int64_t i) { return x[k][broadcast_index(i, y.sizes, x[k].sizes)]; };
    for (int64_t i = 0; i < y.numel(); ++i) {
      if constexpr (std::is_invocable_v<F, double>)
        y[i] = static_cast<double>(f(element(0, i)));
      else if constexpr (std::is_invocable_v<F, double, double>)
        y[i] = static_cast<double>(f(element(0, i), element(1, i)));
      else
        y[i] = static_cast<double>(f(element(0, i), element(1, i), element(2, i)));
    }
    return y;
  };
}

}  // namespace gradus::optest
