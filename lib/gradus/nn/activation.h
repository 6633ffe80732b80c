// Activations as layers, to stand in a Sequential. Formulas, dtypes and errors are those of the functions in
// gradus/ops/activation.h and softmax.h; none has parameters, and each takes and gives one shape.
#pragma once
#include <gradus/nn/module.h>
#include <gradus/ops/activation.h>
#include <gradus/ops/softmax.h>

namespace gradus::nn {

class ReLUImpl : public Module {
 public:
  Tensor forward(const Tensor& x) override { return relu(x); }
  std::string describe() const override { return "ReLU()"; }
};

class LeakyReLUImpl : public Module {
 public:
  explicit LeakyReLUImpl(double negative_slope = 0.01) : slope_(negative_slope) {}
  Tensor forward(const Tensor& x) override { return leaky_relu(x, slope_); }
  std::string describe() const override { return str("LeakyReLU(negative_slope=", slope_, ")"); }

 private:
  double slope_;
};

class SigmoidImpl : public Module {
 public:
  Tensor forward(const Tensor& x) override { return sigmoid(x); }
  std::string describe() const override { return "Sigmoid()"; }
};

class TanhImpl : public Module {
 public:
  Tensor forward(const Tensor& x) override { return tanh(x); }
  std::string describe() const override { return "Tanh()"; }
};

class SiLUImpl : public Module {
 public:
  Tensor forward(const Tensor& x) override { return silu(x); }
  std::string describe() const override { return "SiLU()"; }
};

/// approximate: "none" or "tanh"; others are refused by forward().
class GELUImpl : public Module {
 public:
  explicit GELUImpl(std::string approximate = "none") : approximate_(std::move(approximate)) {}
  Tensor forward(const Tensor& x) override { return gelu(x, approximate_); }
  std::string describe() const override { return str("GELU(approximate='", approximate_, "')"); }

 private:
  std::string approximate_;
};

class SoftmaxImpl : public Module {
 public:
  explicit SoftmaxImpl(int64_t dim) : dim_(dim) {}
  Tensor forward(const Tensor& x) override { return softmax(x, dim_); }
  std::string describe() const override { return str("Softmax(dim=", dim_, ")"); }

 private:
  int64_t dim_;
};

class LogSoftmaxImpl : public Module {
 public:
  explicit LogSoftmaxImpl(int64_t dim) : dim_(dim) {}
  Tensor forward(const Tensor& x) override { return log_softmax(x, dim_); }
  std::string describe() const override { return str("LogSoftmax(dim=", dim_, ")"); }

 private:
  int64_t dim_;
};

using ReLU = Holder<ReLUImpl>;
using LeakyReLU = Holder<LeakyReLUImpl>;
using Sigmoid = Holder<SigmoidImpl>;
using Tanh = Holder<TanhImpl>;
using SiLU = Holder<SiLUImpl>;
using GELU = Holder<GELUImpl>;
using Softmax = Holder<SoftmaxImpl>;
using LogSoftmax = Holder<LogSoftmaxImpl>;

}  // namespace gradus::nn
