// Optimizers, as torch::optim.
#pragma once
#include <gradus/ops/optimizer_step.h>
#include <gradus/tensor/state_dict.h>

#include <memory>
#include <vector>

namespace gradus::optim {

/// What every optimizer shares: groups of parameters with options of their own, and state for each parameter.
/// A parameter without a gradient is left alone by step(); one whose gradient is 0 is not (momentum, weight
/// decay).
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Updates every parameter that has a gradient.
  virtual void step() = 0;
  /// Drops the gradients, or with set_to_none = false sets them to 0.
  void zero_grad(bool set_to_none = true);

  size_t group_count() const { return groups_.size(); }
  const std::vector<Tensor>& params(size_t group) const { return groups_[checked(group)].params; }
  double lr(size_t group = 0) const { return groups_[checked(group)].lr; }
  void set_lr(double lr, size_t group = 0);

  /// Learning rates and each parameter's state by place: "group.0.lr", "state.0.exp_avg" …
  StateDict state_dict() const;
  /// Takes over a saved state, whose tensors may be on another device. Throws E-STATE-DICT, and changes
  /// nothing, if it is that of other parameters or of another optimizer.
  void load_state_dict(const StateDict& state);

 protected:
  struct Group {
    std::vector<Tensor> params;
    double lr;
    Tensor lr_tensor;  // lr on the parameters' device, for the kernels
  };

  Optimizer(const char* name, std::vector<std::vector<Tensor>> groups, std::vector<double> lrs);

  size_t index_of(size_t group, size_t param) const { return first_[group] + param; }
  Group& group(size_t i) { return groups_[i]; }
  /// The group's learning rate where the parameters are.
  const Tensor& lr_tensor(size_t group);
  /// The tensors that parameter `index` keeps between steps, by name; undefined before its first step.
  virtual std::vector<std::pair<const char*, Tensor*>> state_of(size_t index) = 0;

 private:
  size_t checked(size_t group) const;
  Tensor& param(size_t index);
  const char* name_;
  std::vector<Group> groups_;
  std::vector<size_t> first_;  // index of each group's first parameter
  size_t count_ = 0;
};

struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;  ///< added to the gradient (L2)
  bool nesterov = false;
};
struct SGDGroup {
  std::vector<Tensor> params;
  SGDOptions options;
};
/// Stochastic gradient descent: b = momentum b + (1 - dampening) g, p -= lr b.
class SGD : public Optimizer {
 public:
  explicit SGD(std::vector<Tensor> params, const SGDOptions& options = {});
  explicit SGD(const std::vector<SGDGroup>& groups);
  void step() override;

 protected:
  std::vector<std::pair<const char*, Tensor*>> state_of(size_t index) override;

 private:
  std::vector<SGDOptions> options_;
  std::vector<Tensor> buffers_;
  std::vector<SgdSlot> first_, later_;  // this step's work, kept to spare the allocation
};

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;        ///< added after the root of the corrected second moment
  double weight_decay = 0;  ///< added to the gradient (L2)
};
struct AdamGroup {
  std::vector<Tensor> params;
  AdamOptions options;
};
/// Adam (Kingma and Ba 2015), with bias correction.
class Adam : public Optimizer {
 public:
  explicit Adam(std::vector<Tensor> params, const AdamOptions& options = {})
      : Adam("Adam", {{std::move(params), options}}, false) {}
  explicit Adam(const std::vector<AdamGroup>& groups) : Adam("Adam", groups, false) {}
  void step() override;

 protected:
  Adam(const char* name, const std::vector<AdamGroup>& groups, bool decoupled_weight_decay);
  std::vector<std::pair<const char*, Tensor*>> state_of(size_t index) override;

 private:
  struct State {
    Tensor step, exp_avg, exp_avg_sq;
  };
  std::vector<AdamOptions> options_;
  std::vector<State> states_;
  std::vector<AdamSlot> slots_;  // this step's work, kept to spare the allocation
  bool decoupled_;
};

/// AdamOptions, but for the weight decay: another default, as in PyTorch, and another meaning.
struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;  ///< shrinks the parameter by lr weight_decay
};
struct AdamWGroup {
  std::vector<Tensor> params;
  AdamWOptions options;
};
/// Adam with decoupled weight decay (Loshchilov and Hutter 2019).
class AdamW : public Adam {
 public:
  explicit AdamW(std::vector<Tensor> params, const AdamWOptions& options = {})
      : AdamW(std::vector<AdamWGroup>{{std::move(params), options}}) {}
  explicit AdamW(const std::vector<AdamWGroup>& groups);
};

}  // namespace gradus::optim
