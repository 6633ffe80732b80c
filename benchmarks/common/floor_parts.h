// What the floors are made of: a oneDNN primitive with its buffers, the loops that oneDNN does not have, and
// Adam.
#pragma once
#include <dnnl.hpp>
#include <vector>

namespace floors {

using dnnl::memory;
using Dims = memory::dims;

dnnl::engine& engine();
dnnl::stream& stream();

memory::desc f32(const Dims& dims, memory::format_tag tag);
/// The same sizes, in the layout a primitive likes best.
memory::desc any_layout(const memory::desc& d);
memory buffer(const memory::desc& desc);
inline float* data(const memory& m) { return static_cast<float*>(m.get_data_handle()); }

/// A primitive and its arguments, ready to run.
struct Step {
  dnnl::primitive primitive;
  std::vector<dnnl_exec_arg_t> arguments;
  std::vector<memory> memories;  // kept alive
  void run() {
    dnnl_primitive_execute(primitive.get(), stream().get(), static_cast<int>(arguments.size()),
                           arguments.data());
  }
};
Step make_step(const dnnl::primitive& p, std::initializer_list<std::pair<int, memory>> arguments);

/// Copies `from` into `to`'s layout.
Step make_reorder(const memory& from, const memory& to);
void run_all(std::vector<Step>& steps);

/// Weights or gradients in one buffer each, so that Adam is one loop.
class Parameters {
 public:
  /// Space for a tensor of `desc`; call before any memory is used.
  size_t add(const memory::desc& desc);
  void allocate();
  memory weight(size_t i) const { return weights_[i]; }
  memory grad(size_t i) const { return grads_[i]; }
  void adam();

 private:
  std::vector<memory::desc> descs_;
  std::vector<memory> weights_, grads_;
  std::vector<float> w_, g_, m_, v_;
  int step_ = 0;
};

/// Loss over the rows and its gradient into `grad`.
float cross_entropy(const float* logits, const int64_t* labels, int64_t rows, int64_t classes, float* grad);
float mse(const float* y, const float* target, int64_t n, float* grad);
/// Inverted dropout with p = 0.5: a fresh mask by Philox, kept for the backward pass.
void dropout(float* x, float* mask, int64_t n);
void multiply(float* x, const float* mask, int64_t n);

// What differs between oneDNN 2 and 3.
inline Dims dims_of(const memory::desc& d) {
#if DNNL_VERSION_MAJOR >= 3
  return d.get_dims();
#else
  return d.dims();
#endif
}
dnnl::eltwise_forward::primitive_desc relu_forward(const memory::desc& d);
dnnl::eltwise_backward::primitive_desc relu_backward(const memory::desc& d,
                                                     const dnnl::eltwise_forward::primitive_desc& hint);
dnnl::pooling_forward::primitive_desc pool_forward(const memory::desc& src, const memory::desc& dst);
dnnl::pooling_backward::primitive_desc pool_backward(const memory::desc& src, const memory::desc& dst,
                                                     const dnnl::pooling_forward::primitive_desc& hint);
template <class P, class... A>
typename P::primitive_desc describe(const A&... a) {
#if DNNL_VERSION_MAJOR >= 3
  return typename P::primitive_desc(engine(), a...);
#else
  return typename P::primitive_desc(typename P::desc(a...), engine());
#endif
}
template <class P, class Hint, class... A>
typename P::primitive_desc describe_backward(const Hint& hint, const A&... a) {
#if DNNL_VERSION_MAJOR >= 3
  return typename P::primitive_desc(engine(), a..., hint);
#else
  return typename P::primitive_desc(typename P::desc(a...), engine(), hint);
#endif
}

}  // namespace floors
