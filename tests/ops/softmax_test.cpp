#include <gradus/ops/arithmetic.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/softmax.h>

#include <cmath>
#include <limits>

#include "op_case.h"

namespace gradus::optest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// softmax along `dim` (from the end where negative), or its logarithm.
auto reference(int dim, bool log) {
  return [=](const RefArrays& x) {
    RefArray y = x[0];
    const Shape& sizes = y.sizes;
    const int d = sizes.empty() ? 0 : dim < 0 ? dim + sizes.size() : dim;
    const int64_t n = sizes.empty() ? 1 : sizes[d];
    int64_t inner = 1;
    for (int k = d + 1; k < sizes.size(); ++k) inner *= sizes[k];
    for (int64_t i = 0; i < y.numel(); ++i) {
      double total = 0;
      const int64_t first = i / (n * inner) * n * inner + i % inner;
      for (int64_t k = 0; k < n; ++k) total += std::exp(x[0][first + k * inner]);
      y[i] = log ? x[0][i] - std::log(total) : std::exp(x[0][i]) / total;
    }
    return y;
  };
}

const std::vector<std::vector<Shape>> kShapes = {{{3, 4}}, {{2, 3, 2, 3}}, {{}},      {{0, 3}},
                                                 {{3, 0}}, {{1, 1}},       {{2, 37}}, {{4, 19}}};

GRADUS_OP_CASES(softmax,
                OpCase{.name = "softmax_last",
                       .shapes = kShapes,
                       .inputs = {{}},
                       .forward = [](const Tensors& x) { return softmax(x[0], -1); },
                       .reference = reference(-1, false)},
                OpCase{.name = "softmax_first",
                       .shapes = kShapes,
                       .inputs = {{}},
                       .forward = [](const Tensors& x) { return softmax(x[0], 0); },
                       .reference = reference(0, false)},
                OpCase{.name = "log_softmax_last",
                       .shapes = kShapes,
                       .inputs = {{}},
                       .forward = [](const Tensors& x) { return log_softmax(x[0], -1); },
                       .reference = reference(-1, true)},
                OpCase{.name = "log_softmax_channels",
                       .shapes = {{{2, 3, 2, 3}}, {{1, 5, 4, 5}}, {{2, 1, 2, 2}}, {{2, 3, 0, 1}}},
                       .inputs = {{}},
                       .forward = [](const Tensors& x) { return log_softmax(x[0], 1); },
                       .reference = reference(1, true)});

bool all_nan(const Tensor& x) {
  for (double v : x.to_vector<double>())
    if (!std::isnan(v)) return false;
  return true;
}

TEST(Softmax, NUM_01_huge_logits) {
  for (DType dtype : {kFloat16, kBFloat16, kFloat32, kFloat64}) {
    const Tensor x = tensor({0.0, 200.0}, {.dtype = dtype});
    EXPECT_EQ(log_softmax(x, 0).to_vector<double>(), (std::vector<double>{-200, 0}));
    EXPECT_EQ(softmax(x, 0)[1].item<double>(), 1);
  }
  // The naive form underflows; this is why log_softmax exists.
  EXPECT_EQ(softmax(tensor({0.0, 200.0}), 0).log()[0].item<double>(), -kInfinity);
  const Tensor huge = log_softmax(tensor({1e8, 1e8}), 0);
  EXPECT_TRUE(std::abs(huge[0].item<double>() + 0.693147) <= 1e-6);
}

TEST(Softmax, rows_without_a_largest_number_give_nan) {
  for (int64_t n : {2, 40}) {
    Tensor x = full({n}, -kInfinity);
    EXPECT_TRUE(all_nan(softmax(x, 0)));
    x = zeros({n});
    x.narrow(0, n - 1, 1).fill_(std::nan(""));
    EXPECT_TRUE(all_nan(softmax(x, 0)) && all_nan(log_softmax(x, 0)));
    x.narrow(0, n - 1, 1).fill_(-kInfinity);
    EXPECT_EQ(softmax(x, 0)[n - 1].item<double>(), 0);
  }
}

TEST(Softmax, refuses_integers_and_bad_dims) {
  EXPECT_THROW(softmax(zeros({2}, {.dtype = kInt64}), 0), Error);
  EXPECT_THROW(softmax(zeros({2}), 1), Error);
}

}  // namespace
}  // namespace gradus::optest
