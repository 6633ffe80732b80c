// Layers with PyTorch's names, arguments, defaults and initial values. Shapes, dtypes and errors are those of
// the operation of the same name in gradus/ops.
#pragma once
#include <gradus/nn/module.h>
#include <gradus/ops/conv.h>
#include <gradus/ops/pool.h>

namespace gradus::nn {

/// y = x weight^T + bias; weight (out, in) and bias (out) start as U(-1/sqrt(in), 1/sqrt(in)).
class LinearImpl : public Module {
 public:
  LinearImpl(int64_t in_features, int64_t out_features, bool bias = true);
  Tensor forward(const Tensor& x) override;
  std::string describe() const override;
  Tensor weight, bias;
};

struct Conv2dLayerOptions {
  Size2 stride = 1;
  Size2 padding = 0;
  Size2 dilation = 1;
  int64_t groups = 1;
  bool bias = true;
};
/// conv2d; weight (out, in / groups, KH, KW) and bias (out) start as U(-1/sqrt(fan_in), 1/sqrt(fan_in)).
class Conv2dImpl : public Module {
 public:
  Conv2dImpl(int64_t in_channels, int64_t out_channels, Size2 kernel_size,
             const Conv2dLayerOptions& options = {});
  Tensor forward(const Tensor& x) override;
  std::string describe() const override;
  Tensor weight, bias;

 private:
  Conv2dLayerOptions options_;
};

class MaxPool2dImpl : public Module {
 public:
  explicit MaxPool2dImpl(Size2 kernel_size, const MaxPool2dOptions& options = {});
  Tensor forward(const Tensor& x) override { return max_pool2d(x, kernel_, options_); }
  std::string describe() const override;

 private:
  Size2 kernel_;
  MaxPool2dOptions options_;
};

class AvgPool2dImpl : public Module {
 public:
  explicit AvgPool2dImpl(Size2 kernel_size, const AvgPool2dOptions& options = {});
  Tensor forward(const Tensor& x) override { return avg_pool2d(x, kernel_, options_); }
  std::string describe() const override;

 private:
  Size2 kernel_;
  AvgPool2dOptions options_;
};

class AdaptiveAvgPool2dImpl : public Module {
 public:
  explicit AdaptiveAvgPool2dImpl(Size2 output_size) : output_(output_size) {}
  Tensor forward(const Tensor& x) override { return adaptive_avg_pool2d(x, output_); }
  std::string describe() const override;

 private:
  Size2 output_;
};

class AdaptiveMaxPool2dImpl : public Module {
 public:
  explicit AdaptiveMaxPool2dImpl(Size2 output_size) : output_(output_size) {}
  Tensor forward(const Tensor& x) override { return adaptive_max_pool2d(x, output_); }
  std::string describe() const override;

 private:
  Size2 output_;
};

struct BatchNormLayerOptions {
  double eps = 1e-5;
  double momentum = 0.1;
  bool affine = true;               ///< learns weight and bias
  bool track_running_stats = true;  ///< else the batch's statistics are used in eval() too
};
/// batch_norm over (N, C) or (N, C, L); buffers running_mean, running_var, num_batches_tracked (counts
/// successful training batches).
class BatchNorm1dImpl : public Module {
 public:
  explicit BatchNorm1dImpl(int64_t num_features, const BatchNormLayerOptions& options = {});
  Tensor forward(const Tensor& x) override;
  std::string describe() const override { return describe_as("BatchNorm1d"); }
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;

 protected:
  virtual void check_input(const Tensor& x) const;
  std::string describe_as(const char* name) const;
  int64_t features_;
  BatchNormLayerOptions options_;
};
/// batch_norm over (N, C, H, W).
class BatchNorm2dImpl : public BatchNorm1dImpl {
 public:
  using BatchNorm1dImpl::BatchNorm1dImpl;
  std::string describe() const override { return describe_as("BatchNorm2d"); }

 protected:
  void check_input(const Tensor& x) const override;
};

struct LayerNormLayerOptions {
  double eps = 1e-5;
  bool elementwise_affine = true;
};
/// layer_norm over the last dimensions; weight and bias, of normalized_shape, start as 1 and 0.
class LayerNormImpl : public Module {
 public:
  explicit LayerNormImpl(const Shape& normalized_shape, const LayerNormLayerOptions& options = {});
  Tensor forward(const Tensor& x) override;
  std::string describe() const override;
  Tensor weight, bias;

 private:
  Shape shape_;
  LayerNormLayerOptions options_;
};

/// Zeroes elements with probability p in training and scales the others by 1 / (1 - p); the identity in
/// eval().
class DropoutImpl : public Module {
 public:
  explicit DropoutImpl(double p = 0.5);
  Tensor forward(const Tensor& x) override;
  std::string describe() const override { return str("Dropout(p=", p_, ", inplace=False)"); }

 private:
  double p_;
};

/// Rows of weight (num_embeddings, embedding_dim), which starts as N(0, 1), by int64 index; the row of
/// padding_idx starts at 0 and gets no gradient.
class EmbeddingImpl : public Module {
 public:
  EmbeddingImpl(int64_t num_embeddings, int64_t embedding_dim, int64_t padding_idx = -1);
  Tensor forward(const Tensor& indices) override;
  std::string describe() const override;
  Tensor weight;

 private:
  int64_t padding_idx_;
};

/// Joins dimensions start_dim … end_dim, in (N, C, H, W) order whatever the memory format.
class FlattenImpl : public Module {
 public:
  explicit FlattenImpl(int64_t start_dim = 1, int64_t end_dim = -1) : start_(start_dim), end_(end_dim) {}
  Tensor forward(const Tensor& x) override { return x.flatten(start_, end_); }
  std::string describe() const override { return str("Flatten(start_dim=", start_, ", end_dim=", end_, ")"); }

 private:
  int64_t start_, end_;
};

class IdentityImpl : public Module {
 public:
  Tensor forward(const Tensor& x) override { return x; }
  std::string describe() const override { return "Identity"; }
};

using Linear = Holder<LinearImpl>;
// Classes, so that options can be given in braces: nn::Conv2d(1, 32, 3, {.padding = 1}).
struct Conv2d : Holder<Conv2dImpl> {
  Conv2d(int64_t in_channels, int64_t out_channels, Size2 kernel_size, const Conv2dLayerOptions& options = {})
      : Holder(in_channels, out_channels, kernel_size, options) {}
};
struct MaxPool2d : Holder<MaxPool2dImpl> {
  explicit MaxPool2d(Size2 kernel_size, const MaxPool2dOptions& options = {})
      : Holder(kernel_size, options) {}
};
struct AvgPool2d : Holder<AvgPool2dImpl> {
  explicit AvgPool2d(Size2 kernel_size, const AvgPool2dOptions& options = {})
      : Holder(kernel_size, options) {}
};
using AdaptiveAvgPool2d = Holder<AdaptiveAvgPool2dImpl>;
using AdaptiveMaxPool2d = Holder<AdaptiveMaxPool2dImpl>;
struct BatchNorm1d : Holder<BatchNorm1dImpl> {
  explicit BatchNorm1d(int64_t num_features, const BatchNormLayerOptions& options = {})
      : Holder(num_features, options) {}
};
struct BatchNorm2d : Holder<BatchNorm2dImpl> {
  explicit BatchNorm2d(int64_t num_features, const BatchNormLayerOptions& options = {})
      : Holder(num_features, options) {}
};
struct LayerNorm : Holder<LayerNormImpl> {
  explicit LayerNorm(const Shape& normalized_shape, const LayerNormLayerOptions& options = {})
      : Holder(normalized_shape, options) {}
  explicit LayerNorm(int64_t normalized_size, const LayerNormLayerOptions& options = {})
      : LayerNorm(Shape{normalized_size}, options) {}
};
using Dropout = Holder<DropoutImpl>;
using Embedding = Holder<EmbeddingImpl>;
using Flatten = Holder<FlattenImpl>;
using Identity = Holder<IdentityImpl>;

}  // namespace gradus::nn
