#include "kernels/conv.cuh"

#include <gradus/backends/cpu/conv_loops.h>
#include <gradus/backends/cpu/onednn.h>
#include <gradus/backends/cpu/widen.h>

// Channels-last activations go to oneDNN as they are; row-major ones are reordered to the layout it likes and
// back. Weights stay row-major in the model and are reordered at each call: they are small, and change every
// step.
namespace gradus {
namespace {

using dnnl::memory;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;

memory::dims pair(const int64_t (&v)[2]) { return {v[0], v[1]}; }
memory::dims dilates(const Window& w) { return {w.dilation[0] - 1, w.dilation[1] - 1}; }

// oneDNN counts groups as a dimension of the weights.
TensorArg grouped(TensorArg w, int64_t groups) {
  if (groups == 1) return w;
  w.sizes[0] /= groups;
  w.sizes.insert(0, groups);
  w.strides.insert(0, w.sizes[1] * w.strides[0]);
  return w;
}

bool channels_last(const TensorArg& t) { return t.strides == channels_last_strides(t.sizes); }

// One channel is both layouts; as channels-last it goes through without a copy.
TensorArg canonical(TensorArg t) {
  if (t.sizes[1] == 1 && t.strides == contiguous_strides(t.sizes)) t.strides = channels_last_strides(t.sizes);
  return t;
}

// Where input and output are both channels-last, oneDNN takes them as they are. It has slow reference code
// for mixtures, so else it may choose both.
memory::desc activation(const TensorArg& t, const TensorArg& other) {
  return channels_last(t) && channels_last(other) ? cpu::describe(t) : cpu::any_layout(t);
}

cpu::Key key(int kind, const Window& w) {
  return cpu::Key(kind)
      .add(w.stride[0])
      .add(w.stride[1])
      .add(w.padding[0])
      .add(w.padding[1])
      .add(w.dilation[0])
      .add(w.dilation[1])
      .add(w.groups);
}

dnnl::convolution_forward::primitive_desc forward_desc(const TensorArg& x, const TensorArg& weight,
                                                       const TensorArg* bias, const TensorArg& y,
                                                       const Window& w) {
  const auto padding = pair(w.padding);
  const auto kind = dnnl::prop_kind::forward_training;
  if (bias) {
    return cpu::make_primitive_desc<dnnl::convolution_forward>(
        kind, kDirect, activation(x, y), cpu::any_layout(weight), cpu::describe(*bias), activation(y, x),
        pair(w.stride), dilates(w), padding, padding);
  }
  return cpu::make_primitive_desc<dnnl::convolution_forward>(kind, kDirect, activation(x, y),
                                                             cpu::any_layout(weight), activation(y, x),
                                                             pair(w.stride), dilates(w), padding, padding);
}

void make_forward(cpu::Primitive& primitive, const void* problem) {
  const auto& p = *static_cast<const ConvArgs*>(problem);
  const TensorArg weight = grouped(p.w, p.window.groups);
  const auto desc = forward_desc(p.x, weight, p.bias.present() ? &p.bias : nullptr, p.y, p.window);
  primitive.set(dnnl::convolution_forward(desc));
  primitive.add_reordered_input(DNNL_ARG_SRC, cpu::describe(p.x), desc.src_desc());
  primitive.add_reordered_input(DNNL_ARG_WEIGHTS, cpu::describe(weight), desc.weights_desc());
  primitive.add_reordered_output(DNNL_ARG_DST, desc.dst_desc(), cpu::describe(p.y));
  if (p.bias.present()) primitive.add_operand(DNNL_ARG_BIAS, cpu::describe(p.bias));
}

void make_grad_input(cpu::Primitive& primitive, const void* problem) {
  const auto& p = *static_cast<const ConvGradInputArgs*>(problem);
  const TensorArg weight = grouped(p.w, p.window.groups);
  const auto hint = forward_desc(p.gx, weight, nullptr, p.gy, p.window);
  const auto desc = cpu::make_backward_desc<dnnl::convolution_backward_data>(
      hint, kDirect, activation(p.gx, p.gy), cpu::any_layout(weight), activation(p.gy, p.gx),
      pair(p.window.stride), dilates(p.window), pair(p.window.padding), pair(p.window.padding));
  primitive.set(dnnl::convolution_backward_data(desc));
  primitive.add_reordered_input(DNNL_ARG_DIFF_DST, cpu::describe(p.gy), desc.diff_dst_desc());
  primitive.add_reordered_input(DNNL_ARG_WEIGHTS, cpu::describe(weight), desc.weights_desc());
  primitive.add_reordered_output(DNNL_ARG_DIFF_SRC, desc.diff_src_desc(), cpu::describe(p.gx));
}

dnnl::convolution_backward_weights::primitive_desc grad_weight_desc(const ConvGradWeightArgs& p,
                                                                    const TensorArg& weight) {
  const auto padding = pair(p.window.padding);
  const auto hint = forward_desc(p.x, weight, p.gbias.present() ? &p.gbias : nullptr, p.gy, p.window);
  if (p.gbias.present()) {
    return cpu::make_backward_desc<dnnl::convolution_backward_weights>(
        hint, kDirect, activation(p.x, p.gy), cpu::any_layout(weight), cpu::describe(p.gbias),
        activation(p.gy, p.x), pair(p.window.stride), dilates(p.window), padding, padding);
  }
  return cpu::make_backward_desc<dnnl::convolution_backward_weights>(
      hint, kDirect, activation(p.x, p.gy), cpu::any_layout(weight), activation(p.gy, p.x),
      pair(p.window.stride), dilates(p.window), padding, padding);
}

void make_grad_weight(cpu::Primitive& primitive, const void* problem) {
  const auto& p = *static_cast<const ConvGradWeightArgs*>(problem);
  const TensorArg weight = grouped(p.gw, p.window.groups);
  const auto desc = grad_weight_desc(p, weight);
  primitive.set(dnnl::convolution_backward_weights(desc));
  primitive.add_reordered_input(DNNL_ARG_DIFF_DST, cpu::describe(p.gy), desc.diff_dst_desc());
  primitive.add_reordered_input(DNNL_ARG_SRC, cpu::describe(p.x), desc.src_desc());
  primitive.add_reordered_output(DNNL_ARG_DIFF_WEIGHTS, desc.diff_weights_desc(), cpu::describe(weight));
  if (p.gbias.present()) primitive.add_operand(DNNL_ARG_DIFF_BIAS, cpu::describe(p.gbias));
}

bool run_forward(ConvArgs p) {
  p.x = canonical(p.x), p.y = canonical(p.y);
  auto* primitive =
      cpu::find_primitive(key(2, p.window).add(p.x).add(p.w).add(p.bias).add(p.y), &make_forward, &p);
  if (!primitive) return false;
  if (p.bias.present()) {
    primitive->run({p.x.address, p.w.address, p.y.address, p.bias.address});
  } else {
    primitive->run({p.x.address, p.w.address, p.y.address});
  }
  return true;
}

bool run_grad_input(ConvGradInputArgs p) {
  p.gx = canonical(p.gx), p.gy = canonical(p.gy);
  auto* primitive = cpu::find_primitive(key(3, p.window).add(p.gy).add(p.w).add(p.gx), &make_grad_input, &p);
  if (primitive) primitive->run({p.gy.address, p.w.address, p.gx.address});
  return primitive != nullptr;
}

bool run_grad_weight(ConvGradWeightArgs p) {
  p.x = canonical(p.x), p.gy = canonical(p.gy);
  auto* primitive =
      cpu::find_primitive(key(4, p.window).add(p.gy).add(p.x).add(p.gw).add(p.gbias), &make_grad_weight, &p);
  if (!primitive) return false;
  if (p.gbias.present()) {
    primitive->run({p.gy.address, p.x.address, p.gw.address, p.gbias.address});
  } else {
    primitive->run({p.gy.address, p.x.address, p.gw.address});
  }
  return true;
}

// The vendor library, else plain loops, else (half types) the same in float32.
template <class Args>
void dispatch(const Args& args, DType dtype, bool (*vendor)(Args), void (*loops64)(const Args&),
              void (*loops32)(const Args&), KernelFn<Args> self, const Stream& stream) {
  if (dtype == DType::float64) return loops64(args);
  if (dtype != DType::float16 && vendor(args)) return;
  if (dtype == DType::float32) return loops32(args);
  cpu::run_widened(args, self, stream);
}

}  // namespace

void conv_cpu(const ConvArgs& p, const Stream& stream) {
  dispatch(p, p.y.dtype, &run_forward, &cpu::conv_loops<double>, &cpu::conv_loops<float>, &conv_cpu, stream);
}
void conv_grad_input_cpu(const ConvGradInputArgs& p, const Stream& stream) {
  dispatch(p, p.gx.dtype, &run_grad_input, &cpu::conv_grad_input_loops<double>,
           &cpu::conv_grad_input_loops<float>, &conv_grad_input_cpu, stream);
}
void conv_grad_weight_cpu(const ConvGradWeightArgs& p, const Stream& stream) {
  dispatch(p, p.gw.dtype, &run_grad_weight, &cpu::conv_grad_weight_loops<double>,
           &cpu::conv_grad_weight_loops<float>, &conv_grad_weight_cpu, stream);
}

}  // namespace gradus
