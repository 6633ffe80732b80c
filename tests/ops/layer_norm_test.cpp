#include <gradus/ops/factories.h>
#include <gradus/ops/layer_norm.h>
#include <gradus/ops/random.h>

#include <cmath>

#include "op_case.h"

namespace gradus::optest {
namespace {

// Over the last `over` dimensions; weight and bias where they are given.
auto reference(int over) {
  return [=](const RefArrays& x) {
    RefArray y = x[0];
    int64_t cols = 1;
    for (int d = y.sizes.size() - over; d < y.sizes.size(); ++d) cols *= y.sizes[d];
    for (int64_t i = 0; i < y.numel(); ++i) {
      const int64_t first = i / cols * cols;
      double mean = 0, variance = 0;
      for (int64_t k = 0; k < cols; ++k) mean += x[0][first + k] / static_cast<double>(cols);
      for (int64_t k = 0; k < cols; ++k)
        variance += (x[0][first + k] - mean) * (x[0][first + k] - mean) / static_cast<double>(cols);
      y[i] = (x[0][i] - mean) / std::sqrt(variance + 1e-3);
      if (x.size() > 1) y[i] *= x[1][i % cols];
      if (x.size() > 2) y[i] += x[2][i % cols];
    }
    return y;
  };
}

GRADUS_OP_CASES(
    layer_norm,
    OpCase{.name = "layer_norm",
           .shapes = {{{4, 5}, {5}, {5}}, {{2, 3, 2, 6}, {6}, {6}}, {{0, 5}, {5}, {5}}, {{37}, {37}, {37}}},
           .inputs = {{}, {}, {}},
           .forward = [](const Tensors& x) { return layer_norm(x[0], x[1].sizes(), x[1], x[2], 1e-3); },
           .reference = reference(1),
           .tolerance = 12,
           .gradient_tolerance = 64},
    OpCase{.name = "layer_norm_plain",
           .shapes = {{{4, 2, 3}}, {{2, 3, 2, 4}}, {{1, 5, 8}}},
           .inputs = {{}},
           .forward =
               [](const Tensors& x) {
                 return layer_norm(x[0], {x[0].size(-2), x[0].size(-1)}, {}, {}, 1e-3);
               },
           .reference = reference(2),
           .tolerance = 12,
           .gradient_tolerance = 64},
    OpCase{.name = "layer_norm_weight_only",
           .shapes = {{{4, 5}, {5}}, {{3, 40}, {40}}},
           .inputs = {{}, {}},
           .forward = [](const Tensors& x) { return layer_norm(x[0], x[1].sizes(), x[1], {}, 1e-3); },
           .reference = reference(1),
           .tolerance = 12,
           .gradient_tolerance = 64});

TEST(LayerNorm, parameter_gradients_of_many_rows_add_up) {
  // 20,000 rows are cut into parts; the bias gradient is their count.
  const Tensor x = rand({20000, 64});
  Tensor weight = ones({64}).requires_grad_(), bias = zeros({64}).requires_grad_();
  layer_norm(x, {64}, weight, bias).sum().backward();
  EXPECT_EQ(bias.grad().to_vector<double>(), std::vector<double>(64, 20000));
}

TEST(LayerNorm, refuses_shapes_that_do_not_fit) {
  const auto message = [](auto f) -> std::string {
    try {
      f();
    } catch (const Error& e) {
      return e.code() + " " + e.what();
    }
    return "no error";
  };
  const std::string shape = message([] { layer_norm(zeros({2, 3}), {4}); });
  EXPECT_NE(shape.find("E-SHAPE"), std::string::npos);
  EXPECT_NE(shape.find("normalized_shape=[4]"), std::string::npos);
  EXPECT_NE(shape.find("[2, 3]"), std::string::npos);
  EXPECT_NE(message([] { layer_norm(zeros({2, 3}), {3}, ones({2})); }).find("E-SHAPE"), std::string::npos);
  EXPECT_NE(message([] {
              layer_norm(zeros({2, 3}), {3}, ones({3}, {.dtype = kFloat64}));
            }).find("E-DTYPE"),
            std::string::npos);
}

}  // namespace
}  // namespace gradus::optest
