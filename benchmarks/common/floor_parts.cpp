#include <common/floor_parts.h>
#include <gradus/base/parallel.h>
#include <gradus/base/random.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <random>

namespace floors {

using dnnl::algorithm;
using dnnl::prop_kind;

dnnl::engine& engine() {
  static dnnl::engine e(dnnl::engine::kind::cpu, 0);
  return e;
}
dnnl::stream& stream() {
  static dnnl::stream s(engine());
  return s;
}

memory::desc f32(const Dims& dims, memory::format_tag tag) { return {dims, memory::data_type::f32, tag}; }

memory::desc any_layout(const memory::desc& d) {
  return {dims_of(d), memory::data_type::f32, memory::format_tag::any};
}

namespace {

// The same numbers in every run, and no pattern: rows that resemble each other are learned slowly.
void fill_uniform(float* p, size_t n, float bound) {
  std::mt19937 random;
  std::uniform_real_distribution<float> uniform(-bound, bound);
  for (size_t i = 0; i < n; ++i) p[i] = uniform(random);
}

}  // namespace

memory buffer(const memory::desc& desc) {
  memory m(desc, engine());
  fill_uniform(data(m), desc.get_size() / sizeof(float), 1.7f);  // variance 1
  return m;
}

Step make_step(const dnnl::primitive& p, std::initializer_list<std::pair<int, memory>> arguments) {
  Step step{p, {}, {}};
  for (const auto& [arg, m] : arguments) {
    step.memories.push_back(m);
    step.arguments.push_back({arg, m.get()});
  }
  return step;
}

Step make_reorder(const memory& from, const memory& to) {
  return make_step(dnnl::reorder(from, to), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

void run_all(std::vector<Step>& steps) {
  for (Step& s : steps) s.run();
}

size_t Parameters::add(const memory::desc& desc) {
  descs_.push_back(desc);
  return descs_.size() - 1;
}

void Parameters::allocate() {
  size_t total = 0;
  std::vector<size_t> at;
  for (const auto& d : descs_) {
    at.push_back(total);
    total += (d.get_size() / sizeof(float) + 15) / 16 * 16;
  }
  for (auto* v : {&w_, &g_, &m_, &v_}) v->assign(total, 0.f);
  for (size_t i = 0; i < descs_.size(); ++i) {
    const Dims dims = dims_of(descs_[i]);  // a bias has one: 0
    const auto inputs =
        static_cast<float>(std::accumulate(dims.begin() + 1, dims.end(), int64_t{1}, std::multiplies<>()));
    if (dims.size() > 1)
      fill_uniform(w_.data() + at[i], descs_[i].get_size() / sizeof(float), 1 / std::sqrt(inputs));
    weights_.emplace_back(descs_[i], engine(), w_.data() + at[i]);
    grads_.emplace_back(descs_[i], engine(), g_.data() + at[i]);
  }
}

void Parameters::adam() {
  ++step_;
  const float rate = 1e-3f / (1 - std::pow(0.9f, static_cast<float>(step_)));
  const float root = std::sqrt(1 - std::pow(0.999f, static_cast<float>(step_)));
  float *w = w_.data(), *g = g_.data(), *m = m_.data(), *v = v_.data();
  gradus::parallel_for(0, static_cast<int64_t>(w_.size()), 16384, [=](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) {
      m[i] += 0.1f * (g[i] - m[i]);
      v[i] = 0.999f * v[i] + 0.001f * g[i] * g[i];
      w[i] -= rate * (m[i] / (std::sqrt(v[i]) / root + 1e-8f));
    }
  });
}

float cross_entropy(const float* logits, const int64_t* labels, int64_t rows, int64_t classes, float* grad) {
  float loss = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const float* x = logits + r * classes;
    float* g = grad + r * classes;
    float top = x[0], sum = 0;
    for (int64_t c = 1; c < classes; ++c) top = std::max(top, x[c]);
    for (int64_t c = 0; c < classes; ++c) sum += g[c] = std::exp(x[c] - top);
    loss += std::log(sum) + top - x[labels[r]];
    for (int64_t c = 0; c < classes; ++c) g[c] = (g[c] / sum - (c == labels[r])) / static_cast<float>(rows);
  }
  return loss / static_cast<float>(rows);
}

float mse(const float* y, const float* target, int64_t n, float* grad) {
  float loss = 0;
  for (int64_t i = 0; i < n; ++i) {
    const float d = y[i] - target[i];
    loss += d * d;
    grad[i] = 2 * d / static_cast<float>(n);
  }
  return loss / static_cast<float>(n);
}

void dropout(float* x, float* mask, int64_t n) {
  static uint64_t offset = 0;
  const gradus::PhiloxStream random{1, ++offset};
  gradus::parallel_for(0, n / 4, 4096, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto words = random.words(static_cast<uint64_t>(i));
      for (int k = 0; k < 4; ++k) {
        mask[4 * i + k] = words.word[k] >> 31 ? 2.f : 0.f;
        x[4 * i + k] *= mask[4 * i + k];
      }
    }
  });
}

void multiply(float* x, const float* mask, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) x[i] *= mask[i];
}

#if DNNL_VERSION_MAJOR >= 3
dnnl::eltwise_forward::primitive_desc relu_forward(const memory::desc& d) {
  return {engine(), prop_kind::forward_training, algorithm::eltwise_relu, d, d, 0.f};
}
dnnl::eltwise_backward::primitive_desc relu_backward(const memory::desc& d,
                                                     const dnnl::eltwise_forward::primitive_desc& hint) {
  return {engine(), algorithm::eltwise_relu, d, d, d, 0.f, 0.f, hint};
}
dnnl::pooling_forward::primitive_desc pool_forward(const memory::desc& src, const memory::desc& dst) {
  return {
      engine(), prop_kind::forward_training, algorithm::pooling_max, src, dst, {2, 2}, {2, 2}, {0, 0}, {0, 0},
      {0, 0}};
}
dnnl::pooling_backward::primitive_desc pool_backward(const memory::desc& src, const memory::desc& dst,
                                                     const dnnl::pooling_forward::primitive_desc& hint) {
  return {engine(), algorithm::pooling_max, src, dst, {2, 2}, {2, 2}, {0, 0}, {0, 0}, {0, 0}, hint};
}
#else
dnnl::eltwise_forward::primitive_desc relu_forward(const memory::desc& d) {
  return {{prop_kind::forward_training, algorithm::eltwise_relu, d, 0.f}, engine()};
}
dnnl::eltwise_backward::primitive_desc relu_backward(const memory::desc& d,
                                                     const dnnl::eltwise_forward::primitive_desc& hint) {
  return {{algorithm::eltwise_relu, d, d, 0.f}, engine(), hint};
}
dnnl::pooling_forward::primitive_desc pool_forward(const memory::desc& src, const memory::desc& dst) {
  return {{prop_kind::forward_training, algorithm::pooling_max, src, dst, {2, 2}, {2, 2}, {0, 0}, {0, 0}},
          engine()};
}
dnnl::pooling_backward::primitive_desc pool_backward(const memory::desc& src, const memory::desc& dst,
                                                     const dnnl::pooling_forward::primitive_desc& hint) {
  return {{algorithm::pooling_max, src, dst, {2, 2}, {2, 2}, {0, 0}, {0, 0}}, engine(), hint};
}
#endif

}  // namespace floors
