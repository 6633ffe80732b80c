#include <gradus/ops/factories.h>
#include <gradus/optim/optimizer.h>
#include <gradus/tensor/node.h>

#include <unordered_set>

namespace gradus::optim {

Optimizer::Optimizer(const char* name, std::vector<std::vector<Tensor>> groups, std::vector<double> lrs)
    : name_(name) {
  std::unordered_set<const void*> seen;
  for (size_t g = 0; g < groups.size(); ++g) {
    GRADUS_CHECK(
        !groups[g].empty(), "E-ARG", name, ": optimizer got an empty parameter list",
        hint("are the model's layers registered? A std::vector of layers is not; use nn::ModuleList"));
    GRADUS_CHECK(lrs[g] >= 0, "E-ARG", name, ": invalid learning rate: ", lrs[g]);
    for (const Tensor& p : groups[g]) {
      GRADUS_CHECK(p.defined(), "E-UNDEFINED", name, ": parameter ", count_ + (&p - groups[g].data()),
                   " is an undefined tensor");
      GRADUS_CHECK(p.is_leaf(), "E-ARG", name, ": can't optimize a non-leaf Tensor",
                   hint("pass the model's parameters, not results computed from them"));
      GRADUS_CHECK(seen.insert(p.impl()).second, "E-ARG", name, ": some parameters appear more than once");
    }
    first_.push_back(count_);
    count_ += groups[g].size();
    groups_.push_back({std::move(groups[g]), lrs[g], {}});
  }
  GRADUS_CHECK(count_ > 0, "E-ARG", name, ": optimizer got an empty parameter list",
               hint("are the model's layers registered? A std::vector of layers is not; use nn::ModuleList"));
}

void Optimizer::zero_grad(bool set_to_none) {
  NoGradGuard no_grad;
  for (Group& g : groups_)
    for (Tensor& p : g.params) {
      if (!p.grad().defined()) continue;
      if (set_to_none) {
        p.set_grad({});
      } else {
        Tensor grad = p.grad();
        grad.zero_();
      }
    }
}

size_t Optimizer::checked(size_t group) const {
  GRADUS_CHECK(group < groups_.size(), "E-INDEX", name_, ": group ", group, " is out of range for ",
               groups_.size(), " parameter groups");
  return group;
}

void Optimizer::set_lr(double lr, size_t group) {
  GRADUS_CHECK(lr >= 0, "E-ARG", name_, ": invalid learning rate: ", lr);
  groups_[checked(group)].lr = lr;
  if (groups_[group].lr_tensor.defined()) groups_[group].lr_tensor.fill_(lr);
}

const Tensor& Optimizer::lr_tensor(size_t group) {
  Group& g = groups_[group];
  const Device device = g.params[0].device();
  if (!g.lr_tensor.defined() || g.lr_tensor.device() != device)
    g.lr_tensor = full({}, g.lr, {.dtype = kFloat64, .device = device});
  return g.lr_tensor;
}

Tensor& Optimizer::param(size_t index) {
  size_t g = groups_.size() - 1;
  while (first_[g] > index) --g;
  return groups_[g].params[index - first_[g]];
}

StateDict Optimizer::state_dict() const {
  StateDict state;
  for (size_t g = 0; g < groups_.size(); ++g)
    state.add(str("group.", g, ".lr"), full({}, groups_[g].lr, {.dtype = kFloat64}));
  for (size_t i = 0; i < count_; ++i)
    for (auto& [name, tensor] : const_cast<Optimizer*>(this)->state_of(i))
      if (tensor->defined()) state.add(str("state.", i, ".", name), *tensor);
  return state;
}

// A copy of a saved tensor on the parameter's device; in its dtype and layout too, unless it is a number.
static Tensor laid_out_like(const Tensor& saved, const Tensor& param) {
  NoGradGuard no_grad;
  if (saved.dim() == 0) return saved.to(param.device()).clone();
  Tensor state = empty_like(param);
  return state.copy_(saved);
}

void Optimizer::load_state_dict(const StateDict& state) {
  size_t known = 0;
  std::vector<std::pair<Tensor*, Tensor>> loaded;
  std::vector<double> lrs;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const Tensor* lr = state.find(str("group.", g, ".lr"));
    GRADUS_CHECK(lr, "E-STATE-DICT", name_, ": the saved state has no group ", g, ", this optimizer has ",
                 groups_.size(), " groups", hint("load it into an optimizer made in the same way"));
    lrs.push_back(lr->item<double>());
    ++known;
  }
  for (size_t i = 0; i < count_; ++i)
    for (auto& [name, tensor] : state_of(i)) {
      const Tensor* saved = state.find(str("state.", i, ".", name));
      if (!saved) {
        loaded.emplace_back(tensor, Tensor());
        continue;
      }
      ++known;
      const Tensor& p = param(i);
      GRADUS_CHECK(saved->dim() == 0 || saved->sizes() == p.sizes(), "E-STATE-DICT", name_, ": the saved ",
                   name, " of parameter ", i, " has shape ", saved->sizes(), ", the parameter ", p.sizes(),
                   hint("load it into an optimizer of the same model"));
      loaded.emplace_back(tensor, laid_out_like(*saved, p));
    }
  GRADUS_CHECK(known == state.size(), "E-STATE-DICT", name_, ": the saved state has ", state.size() - known,
               " entries that this optimizer has no place for",
               hint("it was saved by another optimizer or for more parameters"));
  for (auto& [place, tensor] : loaded) *place = tensor;
  for (size_t g = 0; g < groups_.size(); ++g) set_lr(lrs[g], g);
}

namespace {

template <class G>
std::vector<std::vector<Tensor>> params_of(const std::vector<G>& groups) {
  std::vector<std::vector<Tensor>> out;
  for (const G& g : groups) out.push_back(g.params);
  return out;
}
template <class G>
std::vector<double> lrs_of(const std::vector<G>& groups) {
  std::vector<double> out;
  for (const G& g : groups) out.push_back(g.options.lr);
  return out;
}

std::vector<AdamGroup> as_adam(const std::vector<AdamWGroup>& groups) {
  std::vector<AdamGroup> same;
  for (const auto& [params, o] : groups)
    same.push_back({params, {o.lr, o.beta1, o.beta2, o.eps, o.weight_decay}});
  return same;
}

}  // namespace

SGD::SGD(std::vector<Tensor> params, const SGDOptions& options)
    : SGD(std::vector<SGDGroup>{{std::move(params), options}}) {}

SGD::SGD(const std::vector<SGDGroup>& groups) : Optimizer("SGD", params_of(groups), lrs_of(groups)) {
  size_t count = 0;
  for (const SGDGroup& g : groups) {
    const SGDOptions& o = g.options;
    GRADUS_CHECK(o.momentum >= 0, "E-ARG", "SGD: invalid momentum value: ", o.momentum);
    GRADUS_CHECK(o.weight_decay >= 0, "E-ARG", "SGD: invalid weight_decay value: ", o.weight_decay);
    GRADUS_CHECK(!o.nesterov || (o.momentum > 0 && o.dampening == 0), "E-ARG",
                 "SGD: Nesterov momentum requires a momentum and zero dampening, got ", o.momentum, " and ",
                 o.dampening);
    options_.push_back(o);
    count += g.params.size();
  }
  buffers_.resize(count);
}

void SGD::step() {
  NoGradGuard no_grad;
  for (size_t g = 0; g < group_count(); ++g) {
    const SGDOptions& o = options_[g];
    first_.clear(), later_.clear();
    for (size_t i = 0; i < params(g).size(); ++i) {
      const Tensor& p = params(g)[i];
      if (!p.grad().defined()) continue;
      Tensor& buffer = buffers_[index_of(g, i)];
      const bool fresh = o.momentum != 0 && !buffer.defined();
      if (fresh) buffer = empty_like(p);
      (fresh ? first_ : later_).push_back({p, p.grad(), buffer});
    }
    SgdStepOptions options{.momentum = o.momentum,
                           .dampening = o.dampening,
                           .weight_decay = o.weight_decay,
                           .nesterov = o.nesterov,
                           .first_step = false};
    fused_sgd_(later_, lr_tensor(g), options);
    options.first_step = true;
    fused_sgd_(first_, lr_tensor(g), options);
    first_.clear(), later_.clear();  // or the gradients would outlive zero_grad()
  }
}

std::vector<std::pair<const char*, Tensor*>> SGD::state_of(size_t index) {
  return {{"momentum_buffer", &buffers_[index]}};
}

Adam::Adam(const char* name, const std::vector<AdamGroup>& groups, bool decoupled_weight_decay)
    : Optimizer(name, params_of(groups), lrs_of(groups)), decoupled_(decoupled_weight_decay) {
  size_t count = 0;
  for (const AdamGroup& g : groups) {
    const AdamOptions& o = g.options;
    GRADUS_CHECK(o.beta1 >= 0 && o.beta1 < 1 && o.beta2 >= 0 && o.beta2 < 1, "E-ARG", name,
                 ": invalid betas: ", o.beta1, " and ", o.beta2, hint("both lie in [0, 1)"));
    GRADUS_CHECK(o.eps >= 0, "E-ARG", name, ": invalid epsilon value: ", o.eps);
    GRADUS_CHECK(o.weight_decay >= 0, "E-ARG", name, ": invalid weight_decay value: ", o.weight_decay);
    options_.push_back(o);
    count += g.params.size();
  }
  states_.resize(count);
}

void Adam::step() {
  NoGradGuard no_grad;
  for (size_t g = 0; g < group_count(); ++g) {
    const AdamOptions& o = options_[g];
    slots_.clear();
    for (size_t i = 0; i < params(g).size(); ++i) {
      const Tensor& p = params(g)[i];
      if (!p.grad().defined()) continue;
      State& s = states_[index_of(g, i)];
      if (!s.step.defined())
        s = {zeros({}, {.dtype = kFloat32, .device = p.device()}), zeros_like(p), zeros_like(p)};
      slots_.push_back({p, p.grad(), s.exp_avg, s.exp_avg_sq, s.step});
    }
    fused_adam_(slots_, lr_tensor(g), {o.beta1, o.beta2, o.eps, o.weight_decay, decoupled_});
    slots_.clear();
  }
}

std::vector<std::pair<const char*, Tensor*>> Adam::state_of(size_t index) {
  State& s = states_[index];
  return {{"step", &s.step}, {"exp_avg", &s.exp_avg}, {"exp_avg_sq", &s.exp_avg_sq}};
}

AdamW::AdamW(const std::vector<AdamWGroup>& groups) : Adam("AdamW", as_adam(groups), true) {}

}  // namespace gradus::optim
