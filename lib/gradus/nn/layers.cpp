#include <gradus/nn/init.h>
#include <gradus/nn/layers.h>
#include <gradus/ops/batch_norm.h>
#include <gradus/ops/dropout.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/index.h>
#include <gradus/ops/layer_norm.h>
#include <gradus/ops/matmul.h>
#include <gradus/tensor/node.h>

#include <cmath>

namespace gradus::nn {
namespace {

const char* yes_no(bool value) { return value ? "True" : "False"; }

// As PyTorch prints what was given: 2 for (2, 2).
std::string short_form(Size2 s) { return s.h == s.w ? str(s.h) : to_string(s); }

// PyTorch's default for Linear and Conv2d: kaiming_uniform_ with a = sqrt(5) is U(-1/sqrt(fan_in),
// 1/sqrt(fan_in)), and the bias takes the same bound.
void initialise(Tensor weight, Tensor bias) {
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  if (!bias.defined()) return;
  const double bound =
      1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, init::calculate_fan_in_and_fan_out(weight).in)));
  init::uniform_(bias, -bound, bound);
}

void check_count(const char* layer, const char* what, int64_t value) {
  GRADUS_CHECK(value > 0, "E-ARG", layer, ": ", what, " must be positive, got ", value);
}

}  // namespace

LinearImpl::LinearImpl(int64_t in_features, int64_t out_features, bool with_bias) {
  check_count("Linear", "in_features", in_features);
  check_count("Linear", "out_features", out_features);
  weight = register_parameter("weight", empty({out_features, in_features}));
  bias = register_parameter("bias", with_bias ? empty({out_features}) : Tensor());
  initialise(weight, bias);
}
Tensor LinearImpl::forward(const Tensor& x) { return linear(x, weight, bias); }
std::string LinearImpl::describe() const {
  return str("Linear(in_features=", weight.size(1), ", out_features=", weight.size(0),
             ", bias=", yes_no(bias.defined()), ")");
}

Conv2dImpl::Conv2dImpl(int64_t in_channels, int64_t out_channels, Size2 kernel_size,
                       const Conv2dLayerOptions& options)
    : options_(options) {
  check_count("Conv2d", "in_channels", in_channels);
  check_count("Conv2d", "out_channels", out_channels);
  GRADUS_CHECK(options.groups > 0 && in_channels % options.groups == 0 && out_channels % options.groups == 0,
               "E-ARG", "Conv2d: in_channels ", in_channels, " and out_channels ", out_channels,
               " must be divisible by groups ", options.groups);
  weight = register_parameter(
      "weight", empty({out_channels, in_channels / options.groups, kernel_size.h, kernel_size.w}));
  bias = register_parameter("bias", options.bias ? empty({out_channels}) : Tensor());
  initialise(weight, bias);
}
Tensor Conv2dImpl::forward(const Tensor& x) {
  return conv2d(x, weight, bias, {options_.stride, options_.padding, options_.dilation, options_.groups});
}
std::string Conv2dImpl::describe() const {
  std::string text =
      str("Conv2d(", weight.size(1) * options_.groups, ", ", weight.size(0),
          ", kernel_size=", Size2(weight.size(2), weight.size(3)), ", stride=", options_.stride);
  if (options_.padding != Size2(0)) text += str(", padding=", options_.padding);
  if (options_.dilation != Size2(1)) text += str(", dilation=", options_.dilation);
  if (options_.groups != 1) text += str(", groups=", options_.groups);
  if (!bias.defined()) text += ", bias=False";
  return text + ")";
}

MaxPool2dImpl::MaxPool2dImpl(Size2 kernel_size, const MaxPool2dOptions& options)
    : kernel_(kernel_size), options_(options) {}
std::string MaxPool2dImpl::describe() const {
  return str("MaxPool2d(kernel_size=", short_form(kernel_),
             ", stride=", short_form(options_.stride.value_or(kernel_)),
             ", padding=", short_form(options_.padding), ", dilation=", short_form(options_.dilation),
             ", ceil_mode=", yes_no(options_.ceil_mode), ")");
}
AvgPool2dImpl::AvgPool2dImpl(Size2 kernel_size, const AvgPool2dOptions& options)
    : kernel_(kernel_size), options_(options) {}
std::string AvgPool2dImpl::describe() const {
  return str("AvgPool2d(kernel_size=", short_form(kernel_),
             ", stride=", short_form(options_.stride.value_or(kernel_)),
             ", padding=", short_form(options_.padding), ")");
}

BatchNorm1dImpl::BatchNorm1dImpl(int64_t num_features, const BatchNormLayerOptions& options)
    : features_(num_features), options_(options) {
  check_count("BatchNorm", "num_features", num_features);
  weight = register_parameter("weight", options.affine ? ones({num_features}) : Tensor());
  bias = register_parameter("bias", options.affine ? zeros({num_features}) : Tensor());
  const bool track = options.track_running_stats;
  running_mean = register_buffer("running_mean", track ? zeros({num_features}) : Tensor());
  running_var = register_buffer("running_var", track ? ones({num_features}) : Tensor());
  num_batches_tracked =
      register_buffer("num_batches_tracked", track ? zeros({}, {.dtype = kInt64}) : Tensor());
}
Tensor BatchNorm1dImpl::forward(const Tensor& x) {
  check_input(x);
  const bool use_batch = is_training() || !options_.track_running_stats;
  Tensor y = batch_norm(x, running_mean, running_var, weight, bias,
                        {.training = use_batch, .momentum = options_.momentum, .eps = options_.eps});
  if (is_training() && num_batches_tracked.defined()) num_batches_tracked.add_(1);
  return y;
}
void BatchNorm1dImpl::check_input(const Tensor& x) const {
  GRADUS_CHECK(x.dim() == 2 || x.dim() == 3, "E-SHAPE", "BatchNorm1d: expected 2D or 3D input (got ", x.dim(),
               "D input of shape ", x.sizes(), ")", hint("use BatchNorm2d for images"));
}
void BatchNorm2dImpl::check_input(const Tensor& x) const {
  GRADUS_CHECK(x.dim() == 4, "E-SHAPE", "BatchNorm2d: expected 4D input (got ", x.dim(), "D input of shape ",
               x.sizes(), ")", hint("use BatchNorm1d for (N, C) or (N, C, L)"));
}
std::string AdaptiveAvgPool2dImpl::describe() const {
  return str("AdaptiveAvgPool2d(output_size=", short_form(output_), ")");
}
std::string AdaptiveMaxPool2dImpl::describe() const {
  return str("AdaptiveMaxPool2d(output_size=", short_form(output_), ")");
}

std::string BatchNorm1dImpl::describe_as(const char* name) const {
  return str(name, "(", features_, ", eps=", options_.eps, ", momentum=", options_.momentum,
             ", affine=", yes_no(options_.affine),
             ", track_running_stats=", yes_no(options_.track_running_stats), ")");
}

LayerNormImpl::LayerNormImpl(const Shape& normalized_shape, const LayerNormLayerOptions& options)
    : shape_(normalized_shape), options_(options) {
  weight = register_parameter("weight", options.elementwise_affine ? ones(shape_) : Tensor());
  bias = register_parameter("bias", options.elementwise_affine ? zeros(shape_) : Tensor());
}
Tensor LayerNormImpl::forward(const Tensor& x) { return layer_norm(x, shape_, weight, bias, options_.eps); }
std::string LayerNormImpl::describe() const {
  std::string sizes;  // as a Python tuple
  for (int64_t size : shape_) sizes += str(sizes.empty() ? "" : ", ", size);
  return str("LayerNorm((", sizes, shape_.size() == 1 ? ",)" : ")", ", eps=", options_.eps,
             ", elementwise_affine=", yes_no(options_.elementwise_affine), ")");
}

DropoutImpl::DropoutImpl(double p) : p_(p) {
  GRADUS_CHECK(p >= 0 && p <= 1, "E-ARG", "Dropout: dropout probability has to be between 0 and 1, but got ",
               p);
}
Tensor DropoutImpl::forward(const Tensor& x) { return dropout(x, p_, is_training()); }

EmbeddingImpl::EmbeddingImpl(int64_t num_embeddings, int64_t embedding_dim, int64_t padding_idx)
    : padding_idx_(padding_idx) {
  check_count("Embedding", "num_embeddings", num_embeddings);
  check_count("Embedding", "embedding_dim", embedding_dim);
  weight = register_parameter("weight", empty({num_embeddings, embedding_dim}));
  init::normal_(weight);
  if (padding_idx >= 0) {
    NoGradGuard no_grad;
    weight.select(0, padding_idx).fill_(0);
  }
}
Tensor EmbeddingImpl::forward(const Tensor& indices) {
  return padding_idx_ < 0 ? embedding(weight, indices) : embedding(weight, indices, padding_idx_);
}
std::string EmbeddingImpl::describe() const {
  return str("Embedding(", weight.size(0), ", ", weight.size(1),
             padding_idx_ >= 0 ? str(", padding_idx=", padding_idx_) : "", ")");
}

}  // namespace gradus::nn
