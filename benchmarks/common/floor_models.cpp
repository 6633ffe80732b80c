#include <common/floor_parts.h>
#include <common/floors.h>

namespace floors {
namespace {

using tag = memory::format_tag;
using dnnl::prop_kind;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;

// Convolution (3 x 3, padding 1), ReLU, max pooling (2 x 2), with their backward steps.
struct ConvBlock {
  memory src, out, pooled, d_out, d_pooled, d_src;
  dnnl::convolution_forward::primitive_desc conv;
  size_t weight, bias;
  std::vector<Step> forward, backward;

  ConvBlock(memory input, int64_t channels, Parameters& parameters) : src(std::move(input)) {
    const Dims in = dims_of(src.get_desc()), one = {1, 1};
    out = buffer(f32({in[0], channels, in[2], in[3]}, tag::nhwc));
    pooled = buffer(f32({in[0], channels, in[2] / 2, in[3] / 2}, tag::nhwc));
    d_out = buffer(out.get_desc()), d_pooled = buffer(pooled.get_desc());
    const auto w = f32({channels, in[1], 3, 3}, tag::any), b = f32({channels}, tag::a);
    conv = describe<dnnl::convolution_forward>(prop_kind::forward_training, kDirect, src.get_desc(), w, b,
                                               out.get_desc(), one, one, one);
    weight = parameters.add(conv.weights_desc());
    bias = parameters.add(b);
  }

  // Called once the parameters have memory. The first layer needs no gradient of its input.
  void connect(const Parameters& p, bool first) {
    const auto relu = relu_forward(out.get_desc());
    const auto pool = pool_forward(out.get_desc(), pooled.get_desc());
    const memory workspace(pool.workspace_desc(), engine());
    forward = {make_step(dnnl::convolution_forward(conv), {{DNNL_ARG_SRC, src},
                                                           {DNNL_ARG_WEIGHTS, p.weight(weight)},
                                                           {DNNL_ARG_BIAS, p.weight(bias)},
                                                           {DNNL_ARG_DST, out}}),
               make_step(dnnl::eltwise_forward(relu), {{DNNL_ARG_SRC, out}, {DNNL_ARG_DST, out}}),
               make_step(dnnl::pooling_forward(pool),
                         {{DNNL_ARG_SRC, out}, {DNNL_ARG_DST, pooled}, {DNNL_ARG_WORKSPACE, workspace}})};
    backward = {
        make_step(
            dnnl::pooling_backward(pool_backward(out.get_desc(), pooled.get_desc(), pool)),
            {{DNNL_ARG_DIFF_DST, d_pooled}, {DNNL_ARG_WORKSPACE, workspace}, {DNNL_ARG_DIFF_SRC, d_out}}),
        make_step(dnnl::eltwise_backward(relu_backward(out.get_desc(), relu)),
                  {{DNNL_ARG_SRC, out}, {DNNL_ARG_DIFF_DST, d_out}, {DNNL_ARG_DIFF_SRC, d_out}})};
    connect_weights(p);
    if (!first) connect_input(p);
  }

  // Each convolution wants the weights in a layout of its own; they are kept in the forward one's.
  void connect_weights(const Parameters& p) {
    const Dims one = {1, 1};
    const auto pd = describe_backward<dnnl::convolution_backward_weights>(
        conv, kDirect, src.get_desc(), any_layout(conv.weights_desc()), p.weight(bias).get_desc(),
        out.get_desc(), one, one, one);
    const memory d_weight(pd.diff_weights_desc(), engine());
    backward.push_back(
        make_step(dnnl::convolution_backward_weights(pd), {{DNNL_ARG_SRC, src},
                                                           {DNNL_ARG_DIFF_DST, d_out},
                                                           {DNNL_ARG_DIFF_WEIGHTS, d_weight},
                                                           {DNNL_ARG_DIFF_BIAS, p.grad(bias)}}));
    backward.push_back(make_reorder(d_weight, p.grad(weight)));
  }
  void connect_input(const Parameters& p) {
    const Dims one = {1, 1};
    const auto pd = describe_backward<dnnl::convolution_backward_data>(
        conv, kDirect, src.get_desc(), any_layout(conv.weights_desc()), out.get_desc(), one, one, one);
    const memory w(pd.weights_desc(), engine());
    backward.push_back(make_reorder(p.weight(weight), w));
    backward.push_back(
        make_step(dnnl::convolution_backward_data(pd),
                  {{DNNL_ARG_DIFF_DST, d_out}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DIFF_SRC, d_src}}));
  }
};

// A channels-last batch as rows of features in memory order: where nobody asks for (C, H, W) order,
// flattening is free.
memory as_rows(const memory& images) {
  const Dims d = dims_of(images.get_desc());
  return {f32({d[0], d[1] * d[2] * d[3]}, tag::nc), engine(), images.get_data_handle()};
}

// y = x W^T + b
struct LinearBlock {
  memory src, dst, d_src, d_dst;
  dnnl::inner_product_forward::primitive_desc pd;
  size_t weight, bias;
  std::vector<Step> forward, to_input, to_weights;

  LinearBlock(memory input, memory d_input, int64_t outputs, Parameters& parameters)
      : src(std::move(input)), d_src(std::move(d_input)) {
    const Dims in = dims_of(src.get_desc());
    const auto w = f32({outputs, in[1]}, tag::any), b = f32({outputs}, tag::a);
    dst = buffer(f32({in[0], outputs}, tag::nc)), d_dst = buffer(dst.get_desc());
    pd = describe<dnnl::inner_product_forward>(prop_kind::forward_training, src.get_desc(), w, b,
                                               dst.get_desc());
    weight = parameters.add(pd.weights_desc());
    bias = parameters.add(b);
  }

  void connect(const Parameters& p) {
    forward = {make_step(dnnl::inner_product_forward(pd), {{DNNL_ARG_SRC, src},
                                                           {DNNL_ARG_WEIGHTS, p.weight(weight)},
                                                           {DNNL_ARG_BIAS, p.weight(bias)},
                                                           {DNNL_ARG_DST, dst}})};
    const auto any = any_layout(pd.weights_desc());
    const auto data_pd =
        describe_backward<dnnl::inner_product_backward_data>(pd, src.get_desc(), any, dst.get_desc());
    memory w = p.weight(weight), d_w = p.grad(weight);
    if (data_pd.weights_desc() != pd.weights_desc()) {
      w = memory(data_pd.weights_desc(), engine());
      to_input = {make_reorder(p.weight(weight), w)};
    }
    to_input.push_back(
        make_step(dnnl::inner_product_backward_data(data_pd),
                  {{DNNL_ARG_DIFF_DST, d_dst}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DIFF_SRC, d_src}}));
    const auto weights_pd = describe_backward<dnnl::inner_product_backward_weights>(
        pd, src.get_desc(), any, p.weight(bias).get_desc(), dst.get_desc());
    const bool reorder = weights_pd.diff_weights_desc() != pd.weights_desc();
    if (reorder) d_w = memory(weights_pd.diff_weights_desc(), engine());
    to_weights = {
        make_step(dnnl::inner_product_backward_weights(weights_pd), {{DNNL_ARG_SRC, src},
                                                                     {DNNL_ARG_DIFF_DST, d_dst},
                                                                     {DNNL_ARG_DIFF_WEIGHTS, d_w},
                                                                     {DNNL_ARG_DIFF_BIAS, p.grad(bias)}})};
    if (reorder) to_weights.push_back(make_reorder(d_w, p.grad(weight)));
  }

  void backward(bool with_input = true) {
    run_all(to_weights);
    if (with_input) run_all(to_input);
  }
};

// ReLU in place, forward and backward.
struct Relu {
  Step forward, backward;
  Relu(const memory& x, const memory& d_x) {
    const auto relu = relu_forward(x.get_desc());
    forward = make_step(dnnl::eltwise_forward(relu), {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, x}});
    backward = make_step(dnnl::eltwise_backward(relu_backward(x.get_desc(), relu)),
                         {{DNNL_ARG_SRC, x}, {DNNL_ARG_DIFF_DST, d_x}, {DNNL_ARG_DIFF_SRC, d_x}});
  }
};

std::vector<int64_t> make_labels(int64_t batch, int64_t classes) {
  std::vector<int64_t> labels(batch);
  for (int64_t i = 0; i < batch; ++i) labels[i] = i % classes;
  return labels;
}

class Cnn : public TrainStep {
 public:
  explicit Cnn(int64_t batch)
      : batch_(batch),
        conv1_(buffer(f32({batch, 1, 28, 28}, tag::nhwc)), 32, parameters_),
        conv2_(conv1_.pooled, 64, parameters_),
        fc1_(as_rows(conv2_.pooled), as_rows(conv2_.d_pooled), 256, parameters_),
        fc2_(fc1_.dst, fc1_.d_dst, 10, parameters_),
        relu_(fc1_.dst, fc1_.d_dst),
        mask_(batch * 256),
        labels_(make_labels(batch, 10)) {
    conv2_.d_src = conv1_.d_pooled;
    parameters_.allocate();
    conv1_.connect(parameters_, true);
    conv2_.connect(parameters_, false);
    fc1_.connect(parameters_);
    fc2_.connect(parameters_);
  }

  float run() override {
    run_all(conv1_.forward);
    run_all(conv2_.forward);
    run_all(fc1_.forward);
    relu_.forward.run();
    dropout(data(fc1_.dst), mask_.data(), batch_ * 256);
    run_all(fc2_.forward);
    const float loss = cross_entropy(data(fc2_.dst), labels_.data(), batch_, 10, data(fc2_.d_dst));
    fc2_.backward();
    multiply(data(fc1_.d_dst), mask_.data(), batch_ * 256);
    relu_.backward.run();
    fc1_.backward();
    run_all(conv2_.backward);
    run_all(conv1_.backward);
    parameters_.adam();
    return loss;
  }

 private:
  int64_t batch_;
  Parameters parameters_;
  ConvBlock conv1_, conv2_;
  LinearBlock fc1_, fc2_;
  Relu relu_;
  std::vector<float> mask_;
  std::vector<int64_t> labels_;
};

class Mlp : public TrainStep {
 public:
  Mlp(int64_t batch, std::initializer_list<int64_t> sizes)
      : batch_(batch),
        outputs_(*(sizes.end() - 1)),
        labels_(make_labels(batch, outputs_)),
        targets_(batch, 0.5f) {
    memory x = buffer(f32({batch, *sizes.begin()}, tag::nc)), d_x = buffer(x.get_desc());
    for (auto size = sizes.begin() + 1; size != sizes.end(); ++size) {
      layers_.emplace_back(x, d_x, *size, parameters_);
      x = layers_.back().dst, d_x = layers_.back().d_dst;
      if (size + 1 != sizes.end()) relus_.emplace_back(x, d_x);
    }
    parameters_.allocate();
    for (auto& layer : layers_) layer.connect(parameters_);
  }

  float run() override {
    for (size_t i = 0; i < layers_.size(); ++i) {
      run_all(layers_[i].forward);
      if (i < relus_.size()) relus_[i].forward.run();
    }
    LinearBlock& last = layers_.back();
    const float loss = outputs_ > 1
                           ? cross_entropy(data(last.dst), labels_.data(), batch_, outputs_, data(last.d_dst))
                           : mse(data(last.dst), targets_.data(), batch_, data(last.d_dst));
    for (size_t i = layers_.size(); i-- > 0;) {
      if (i < relus_.size()) relus_[i].backward.run();
      layers_[i].backward(i > 0);
    }
    parameters_.adam();
    return loss;
  }

 private:
  int64_t batch_, outputs_;
  Parameters parameters_;
  std::vector<LinearBlock> layers_;
  std::vector<Relu> relus_;
  std::vector<int64_t> labels_;
  std::vector<float> targets_;
};

}  // namespace

std::unique_ptr<TrainStep> cnn(int64_t batch) { return std::make_unique<Cnn>(batch); }
std::unique_ptr<TrainStep> mlp(int64_t batch, std::initializer_list<int64_t> sizes) {
  return std::make_unique<Mlp>(batch, sizes);
}

}  // namespace floors
