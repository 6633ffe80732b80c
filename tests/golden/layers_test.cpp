// Matrix products, convolution, pooling, normalisation and lookup against PyTorch.
#include <gradus/ops/batch_norm.h>
#include <gradus/ops/conv.h>
#include <gradus/ops/dropout.h>
#include <gradus/ops/index.h>
#include <gradus/ops/layer_norm.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/pool.h>
#include <gradus/ops/softmax.h>

#include "golden.h"

namespace gradus::golden {
namespace {

const std::vector<OpCase> kMatmul = {
    GOLDEN("matmul.2d", matmul(in.a, in.b)),        GOLDEN("matmul.vec_vec", matmul(in.a, in.b)),
    GOLDEN("matmul.mat_vec", matmul(in.a, in.b)),   GOLDEN("matmul.vec_mat", matmul(in.a, in.b)),
    GOLDEN("matmul.batched", matmul(in.a, in.b)),   GOLDEN("matmul.broadcast", matmul(in.a, in.b)),
    GOLDEN("matmul.batch_2d", matmul(in.a, in.b)),  GOLDEN("matmul.2d_batch", matmul(in.a, in.b)),
    GOLDEN("matmul.batch_vec", matmul(in.a, in.b)), GOLDEN("matmul.vec_batch", matmul(in.a, in.b)),
    GOLDEN("matmul.one", matmul(in.a, in.b)),       GOLDEN("matmul.inner_zero", matmul(in.a, in.b)),
    GOLDEN("matmul.odd", matmul(in.a, in.b)),       GOLDEN("matmul.transposed", matmul(in.a.t(), in.b.t())),
    GOLDEN("linear", linear(in.x, in.w, in.b)),     GOLDEN("linear.no_bias", linear(in.x, in.w)),
    GOLDEN("linear.3d", linear(in.x, in.w, in.b)),  GOLDEN("linear.1d", linear(in.x, in.w, in.b)),
};

const std::vector<OpCase> kConvolution = {
    GOLDEN("conv2d.plain", conv2d(in.x, in.w, in.b)),
    GOLDEN("conv2d.no_bias", conv2d(in.x, in.w)),
    GOLDEN("conv2d.padding", conv2d(in.x, in.w, in.b, {.padding = 1})),
    GOLDEN("conv2d.stride", conv2d(in.x, in.w, in.b, {.stride = 2})),
    GOLDEN("conv2d.uneven",
           conv2d(in.x, in.w, in.b, {.stride = {2, 1}, .padding = {0, 2}, .dilation = {1, 2}})),
    GOLDEN("conv2d.dilation", conv2d(in.x, in.w, in.b, {.padding = 2, .dilation = 2})),
    GOLDEN("conv2d.groups", conv2d(in.x, in.w, in.b, {.padding = 1, .groups = 2})),
    GOLDEN("conv2d.depthwise", conv2d(in.x, in.w, in.b, {.stride = 2, .groups = 3})),
    GOLDEN("conv2d.one_by_one", conv2d(in.x, in.w, in.b)),
    GOLDEN("conv2d.first_layer", conv2d(in.x, in.w, in.b, {.padding = 1})),
    GOLDEN("conv2d.whole_image", conv2d(in.x, in.w, in.b)),
    GOLDEN("conv2d.strided_kernel", conv2d(in.x, in.w.transpose(2, 3))),
};

const std::vector<OpCase> kPooling = {
    GOLDEN("max_pool2d.plain", max_pool2d_with_indices(in.x, 2)),
    GOLDEN("max_pool2d.overlap", max_pool2d_with_indices(in.x, 3, {.stride = 2, .padding = 1})),
    GOLDEN("max_pool2d.uneven",
           max_pool2d_with_indices(in.x, {2, 3}, {.stride = Size2(1, 2), .padding = {1, 0}})),
    GOLDEN("max_pool2d.dilation", max_pool2d(in.x, 2, {.stride = 1, .dilation = 2})),
    GOLDEN("max_pool2d.ceil", max_pool2d(in.x, 2, {.ceil_mode = true})),
    GOLDEN("max_pool2d.special", max_pool2d_with_indices(in.x, 2)),
    GOLDEN("avg_pool2d.plain", avg_pool2d(in.x, 2)),
    GOLDEN("avg_pool2d.plain.inner", avg_pool2d(in.x, 2, {.count_include_pad = false})),
    GOLDEN("avg_pool2d.overlap", avg_pool2d(in.x, 3, {.stride = 2, .padding = 1})),
    GOLDEN("avg_pool2d.overlap.inner",
           avg_pool2d(in.x, 3, {.stride = 2, .padding = 1, .count_include_pad = false})),
    GOLDEN("avg_pool2d.uneven", avg_pool2d(in.x, {2, 3}, {.stride = Size2(1, 2), .padding = {1, 0}})),
    GOLDEN("avg_pool2d.uneven.inner",
           avg_pool2d(in.x, {2, 3}, {.stride = Size2(1, 2), .padding = {1, 0}, .count_include_pad = false})),
    GOLDEN("avg_pool2d.ceil", avg_pool2d(in.x, 3, {.stride = 2, .padding = 1, .ceil_mode = true})),
    GOLDEN("adaptive_avg_pool2d.1", adaptive_avg_pool2d(in.x, 1)),
    GOLDEN("adaptive_avg_pool2d.3x2", adaptive_avg_pool2d(in.x, {3, 2})),
    GOLDEN("adaptive_avg_pool2d.5x4", adaptive_avg_pool2d(in.x, {5, 4})),
    GOLDEN("adaptive_max_pool2d.1", adaptive_max_pool2d(in.x, 1)),
    GOLDEN("adaptive_max_pool2d.3x2", adaptive_max_pool2d(in.x, {3, 2})),
    GOLDEN("adaptive_max_pool2d.5x4", adaptive_max_pool2d(in.x, {5, 4})),
};

// batch_norm in training, with the running statistics that it changes as further results.
Results trained(const Inputs& in, double momentum) {
  const Tensor y =
      batch_norm(in.x, in.rm, in.rv, in.w, in.b, {.training = true, .momentum = momentum, .eps = 1e-5});
  return std::vector<Tensor>{y, in.rm, in.rv};
}

const std::vector<OpCase> kLayers = {
    GOLDEN("batch_norm.train", trained(in, 0.1)),
    GOLDEN("batch_norm.train_2d", trained(in, 0.1)),
    GOLDEN("batch_norm.momentum", trained(in, 0.4)),
    GOLDEN("batch_norm.eval", batch_norm(in.x, in.rm, in.rv, in.w, in.b, {.training = false})),
    GOLDEN("batch_norm.plain", batch_norm(in.x, {}, {}, {}, {}, {.training = true})),
    GOLDEN("layer_norm", layer_norm(in.x, {5}, in.w, in.b)),
    GOLDEN("layer_norm.plain", layer_norm(in.x, {5})),
    GOLDEN("layer_norm.two_dims", layer_norm(in.x, {3, 5}, in.w, in.b)),
    GOLDEN("layer_norm.eps", layer_norm(in.x, {5}, in.w, in.b, 0.1)),
    GOLDEN("softmax.0", softmax(in.x, 0)),
    GOLDEN("softmax.1", softmax(in.x, 1)),
    GOLDEN("softmax.-1", softmax(in.x, -1)),
    GOLDEN("softmax.huge", softmax(in.x, 1)),
    GOLDEN("log_softmax.0", log_softmax(in.x, 0)),
    GOLDEN("log_softmax.1", log_softmax(in.x, 1)),
    GOLDEN("log_softmax.-1", log_softmax(in.x, -1)),
    GOLDEN("log_softmax.huge", log_softmax(in.x, 1)),
    GOLDEN("embedding", embedding(in.w, in.i)),
    GOLDEN("embedding.padding", embedding(in.w, in.i, 2)),
    GOLDEN("dropout.off", dropout(in.x, 0.5, false)),
    GOLDEN("dropout.zero", dropout(in.x, 0.0, true)),
    GOLDEN("dropout.one", dropout(in.x, 1.0, true)),
};

std::vector<OpCase> conv_pool() {
  std::vector<OpCase> cases = kConvolution;
  cases.insert(cases.end(), kPooling.begin(), kPooling.end());
  return cases;
}

// Sums of products of up to 33 terms (weight gradients: up to 162), values of about 1: the rounding of a term
// is 6e-8 in float32, and the order of the sum differs from PyTorch's.
TEST(GoldenOps, matmul) { check_family("matmul", kMatmul, {5e-15, 4e-6}); }
TEST(GoldenOps, conv_pool) { check_family("conv_pool", conv_pool(), {3e-14, 1e-5}); }
// A normalisation divides a difference by a deviation; its gradient is a difference of sums.
TEST(GoldenOps, layers) { check_family("layers", kLayers, {1e-14, 2e-6}); }

}  // namespace
}  // namespace gradus::golden
