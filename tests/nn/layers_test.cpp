#include <gradus/base/random.h>
#include <gradus/nn/nn.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/random.h>

#include <cmath>

#include "support/expect_error.h"

namespace gradus::nn {
namespace {

using Floats = std::vector<float>;

TEST(Layers, linear_and_conv_call_the_operations) {
  Linear linear_layer(3, 2);
  const Tensor x = randn({4, 3});
  EXPECT_EQ(linear_layer(x).to_vector<float>(),
            gradus::linear(x, linear_layer->weight, linear_layer->bias).to_vector<float>());
  Conv2d conv(4, 6, Size2(3, 2), {.stride = 2, .padding = 1, .groups = 2, .bias = false});
  EXPECT_EQ(conv->weight.sizes(), (Shape{6, 2, 3, 2}));
  EXPECT_FALSE(conv->bias.defined());
  EXPECT_EQ(conv->parameters().size(), 1u);
  EXPECT_EQ(conv(randn({1, 4, 5, 5})).sizes(), (Shape{1, 6, 3, 3}));
}

TEST(Layers, pools_flatten_and_identity) {
  const Tensor x = arange(16, {.dtype = kFloat32}).view({1, 1, 4, 4});
  EXPECT_EQ(MaxPool2d(2)(x).to_vector<float>(), (Floats{5, 7, 13, 15}));
  EXPECT_EQ(AvgPool2d(2)(x).to_vector<float>(), (Floats{2.5, 4.5, 10.5, 12.5}));
  EXPECT_EQ(AdaptiveAvgPool2d(1)(x).to_vector<float>(), (Floats{7.5}));
  EXPECT_EQ(AdaptiveMaxPool2d(Size2(1, 2))(x).to_vector<float>(), (Floats{13, 15}));
  EXPECT_EQ(Flatten()(x).sizes(), (Shape{1, 16}));
  EXPECT_TRUE(Identity()(x).is_same(x));
}

TEST(Layers, dropout_drops_in_training_only) {
  manual_seed(3);
  Dropout drop(0.5);
  const Tensor x = ones({1000});
  double zeros = 0;
  for (float v : drop(x).to_vector<float>()) {
    EXPECT_TRUE(v == 0 || v == 2);
    zeros += v == 0;
  }
  EXPECT_GT(zeros, 400);
  EXPECT_LT(zeros, 600);
  drop->eval();
  EXPECT_EQ(drop(x).to_vector<float>(), x.to_vector<float>());
}

TEST(Layers, batch_norm_counts_batches_and_uses_its_statistics_in_eval) {
  BatchNorm1d norm(2);
  const Tensor x = tensor<float>({1, 10, 3, 20}, {2, 2});
  norm(x);
  EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 1);
  const Floats mean = norm->running_mean.to_vector<float>();
  EXPECT_FLOAT_EQ(mean[0], 0.2f);
  EXPECT_FLOAT_EQ(mean[1], 1.5f);
  norm->eval();
  norm(x);
  EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 1);
  EXPECT_EQ(norm->running_mean.to_vector<float>(), mean);
  EXPECT_EQ(BatchNorm2d(3)(randn({2, 3, 2, 2})).sizes(), (Shape{2, 3, 2, 2}));
}

TEST(Layers, NUM_09_a_refused_batch_is_not_counted) {
  BatchNorm1d norm(3);
  EXPECT_GRADUS_ERROR(norm(ones({1, 3})), "E-SHAPE", "got input size [1, 3]");
  EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 0);
  EXPECT_EQ(norm->running_mean.to_vector<float>(), (Floats{0, 0, 0}));
  EXPECT_EQ(norm->running_var.to_vector<float>(), (Floats{1, 1, 1}));
  norm->eval();
  EXPECT_TRUE(std::fabs(norm(ones({1, 3})).to_vector<double>()[0] - 0.999995) <= 1e-7);
  BatchNorm2d norm2d(3);
  EXPECT_GRADUS_ERROR(norm2d(ones({1, 3, 1, 1})), "E-SHAPE", "[1, 3, 1, 1]");
  EXPECT_EQ(norm2d(ones({1, 3, 2, 2})).sizes(), (Shape{1, 3, 2, 2}));
}

TEST(Layers, NUM_11_an_empty_batch_spoils_no_statistics) {
  BatchNorm2d norm(2);
  EXPECT_EQ(norm(zeros({0, 2, 3, 3})).sizes(), (Shape{0, 2, 3, 3}));
  EXPECT_EQ(norm->running_mean.to_vector<float>(), (Floats{0, 0}));
  EXPECT_EQ(norm->running_var.to_vector<float>(), (Floats{1, 1}));
  for (float v : norm(randn({2, 2, 3, 3})).to_vector<float>()) EXPECT_TRUE(std::isfinite(v));
  for (float v : norm->running_var.to_vector<float>()) EXPECT_TRUE(std::isfinite(v));
}

TEST(Layers, batch_norm_without_statistics_or_parameters) {
  BatchNorm1d norm(2, {.affine = false, .track_running_stats = false});
  EXPECT_TRUE(norm->parameters().empty());
  EXPECT_TRUE(norm->buffers().empty());
  norm->eval();  // the batch's statistics are all it has
  const Floats y = norm(tensor<float>({1, 5, 3, 9}, {2, 2})).to_vector<float>();
  EXPECT_NEAR(y[0], -1, 1e-4);
  EXPECT_NEAR(y[2], 1, 1e-4);
}

TEST(Layers, inputs_of_the_wrong_rank_are_refused) {
  EXPECT_EQ(::gradus::testing::error_of([] {
              BatchNorm2d(3)(zeros({2, 3}));
            }),
            "E-SHAPE: BatchNorm2d: expected 4D input (got 2D input of shape [2, 3])\n"
            "  hint: use BatchNorm1d for (N, C) or (N, C, L)");
  EXPECT_GRADUS_ERROR(BatchNorm1d(3)(zeros({2, 3, 4, 4})), "E-SHAPE", "expected 2D or 3D input");
}

TEST(Layers, embedding_rows_and_the_padding_row) {
  Embedding embed(4, 2, 1);
  const Tensor y = embed(tensor<int64_t>({1, 3}));
  EXPECT_EQ(y.sizes(), (Shape{2, 2}));
  EXPECT_EQ(y[0].to_vector<float>(), (Floats{0, 0}));
  EXPECT_EQ(y[1].to_vector<float>(), embed->weight[3].to_vector<float>());
  y.sum().backward();
  EXPECT_EQ(embed->weight.grad().to_vector<float>(), (Floats{0, 0, 0, 0, 0, 0, 1, 1}));
}

TEST(Layers, layer_norm_over_the_last_dimensions) {
  LayerNorm norm(Shape{2, 2});
  const Floats y = norm(tensor<float>({1, 1, 3, 3}, {1, 2, 2})).to_vector<float>();
  EXPECT_NEAR(y[0], -1, 1e-4);
  EXPECT_NEAR(y[3], 1, 1e-4);
  EXPECT_EQ(LayerNorm(3)->weight.sizes(), (Shape{3}));
  EXPECT_TRUE(LayerNorm({2}, {.elementwise_affine = false})->parameters().empty());
}

TEST(Layers, activations_call_the_operations) {
  const Tensor x = tensor<float>({-1, 0, 2}, {1, 3});
  EXPECT_EQ(ReLU()(x).to_vector<float>(), (Floats{0, 0, 2}));
  EXPECT_EQ(LeakyReLU(0.5)(x).to_vector<float>(), (Floats{-0.5, 0, 2}));
  EXPECT_EQ(Sigmoid()(x).to_vector<float>(), sigmoid(x).to_vector<float>());
  EXPECT_EQ(Tanh()(x).to_vector<float>(), tanh(x).to_vector<float>());
  EXPECT_EQ(SiLU()(x).to_vector<float>(), silu(x).to_vector<float>());
  EXPECT_EQ(GELU()(x).to_vector<float>(), gelu(x).to_vector<float>());
  EXPECT_EQ(GELU("tanh")(x).to_vector<float>(), gelu(x, "tanh").to_vector<float>());
  EXPECT_EQ(Softmax(1)(x).to_vector<float>(), softmax(x, 1).to_vector<float>());
  EXPECT_EQ(LogSoftmax(-1)(x).to_vector<float>(), log_softmax(x, 1).to_vector<float>());
  EXPECT_GRADUS_ERROR(GELU("fast")(x), "E-ARG", "fast");
}

TEST(Layers, losses_call_the_operations_with_their_options) {
  const Tensor x = randn({4, 3}), classes = tensor<int64_t>({0, 2, 1, 1}), y = rand({4, 3});
  EXPECT_EQ(CrossEntropyLoss()(x, classes).item<float>(), cross_entropy(x, classes).item<float>());
  EXPECT_EQ(CrossEntropyLoss({.label_smoothing = 0.1})(x, classes).item<float>(),
            cross_entropy(x, classes, {.label_smoothing = 0.1}).item<float>());
  EXPECT_EQ(NLLLoss({.reduction = Reduction::sum})(x, classes).item<float>(),
            nll_loss(x, classes, {.reduction = Reduction::sum}).item<float>());
  EXPECT_EQ(MSELoss()(x, y).item<float>(), mse_loss(x, y).item<float>());
  EXPECT_EQ(MSELoss(Reduction::none)(x, y).sizes(), (Shape{4, 3}));
  EXPECT_EQ(L1Loss()(x, y).item<float>(), l1_loss(x, y).item<float>());
  EXPECT_EQ(BCEWithLogitsLoss()(x, y).item<float>(), binary_cross_entropy_with_logits(x, y).item<float>());
  EXPECT_EQ(BCELoss()(y, y).item<float>(), binary_cross_entropy(y, y).item<float>());
  EXPECT_EQ(SmoothL1Loss({.beta = 2})(x, y).item<float>(), smooth_l1_loss(x, y, {.beta = 2}).item<float>());
  EXPECT_EQ(HuberLoss({.delta = 0.5})(x, y).item<float>(), huber_loss(x, y, {.delta = 0.5}).item<float>());
}

TEST(Layers, impossible_sizes_are_refused) {
  EXPECT_GRADUS_ERROR(Linear(0, 2), "E-ARG", "in_features must be positive, got 0");
  EXPECT_GRADUS_ERROR(Conv2d(3, 4, 3, {.groups = 2}), "E-ARG", "divisible by groups 2");
  EXPECT_GRADUS_ERROR(Dropout(1.5), "E-ARG", "between 0 and 1, but got 1.5");
  EXPECT_GRADUS_ERROR(Embedding(3, 0), "E-ARG", "embedding_dim must be positive");
  EXPECT_GRADUS_ERROR(BatchNorm1d(0), "E-ARG", "num_features must be positive");
}

TEST(Sequential, runs_in_order_and_can_be_indexed) {
  Sequential net;
  net->push_back(Linear(2, 3));
  net->push_back(std::make_shared<ReLUImpl>());
  net->push_back(Linear(3, 1));
  EXPECT_EQ(net->size(), 3u);
  EXPECT_EQ((*net)[1].describe(), "ReLU()");
  EXPECT_EQ(net(ones({4, 2})).sizes(), (Shape{4, 1}));
  const Tensor x = ones({1});
  EXPECT_TRUE(Sequential()(x).is_same(x));
  ModuleList list(Linear(1, 2), Linear(2, 3));
  Tensor y = ones({1, 1});
  for (const auto& layer : *list) y = (*layer)(y);
  EXPECT_EQ(y.sizes(), (Shape{1, 3}));
  EXPECT_GRADUS_ERROR(list(x), "E-NOT-IMPLEMENTED", "ModuleList: forward() is not defined");
}

TEST(Sequential, an_index_out_of_range_is_refused) {
  Sequential model(Identity{});
  EXPECT_GRADUS_ERROR((*model)[1], "E-INDEX", "index 1 is out of range for 1 modules");
  EXPECT_GRADUS_ERROR((*ModuleList())[0], "E-INDEX", "index 0 is out of range for 0 modules");
}

}  // namespace
}  // namespace gradus::nn
