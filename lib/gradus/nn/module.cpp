#include <cxxabi.h>
#include <gradus/base/log.h>
#include <gradus/nn/module.h>
#include <gradus/tensor/node.h>

#include <algorithm>
#include <cstdlib>
#include <typeinfo>
#include <unordered_set>

namespace gradus::nn {

Tensor Module::forward(const Tensor&) {
  GRADUS_FAIL("E-NOT-IMPLEMENTED", describe(), ": forward() is not defined",
              hint("override forward() in your module"));
}

std::string Module::describe() const {
  int status = 0;
  char* demangled = abi::__cxa_demangle(typeid(*this).name(), nullptr, nullptr, &status);
  const std::string full = status == 0 ? demangled : "Module";
  std::free(demangled);
  const size_t scope = full.rfind("::");
  return scope == full.npos ? full : full.substr(scope + 2);
}

Tensor Module::operator()(const Tensor& input) {
  if (pre_hooks_.empty() && hooks_.empty()) return forward(input);
  Tensor x = input;
  for (const auto& hook : pre_hooks_)
    if (Tensor replaced = hook(*this, x); replaced.defined()) x = std::move(replaced);
  Tensor y = forward(x);
  for (const auto& hook : hooks_)
    if (Tensor replaced = hook(*this, x, y); replaced.defined()) y = std::move(replaced);
  return y;
}

void Module::collect(const std::string& prefix, Named Module::*what, Named& out) const {
  for (const auto& [name, tensor] : this->*what)
    if (tensor.defined()) out.emplace_back(prefix + name, tensor);
  for (const auto& [name, child] : children_) child->collect(prefix + name + ".", what, out);
}

// A tensor that two layers share is one parameter, under its first name.
static std::vector<std::pair<std::string, Tensor>> without_repeats(
    const std::vector<std::pair<std::string, Tensor>>& named) {
  std::vector<std::pair<std::string, Tensor>> out;
  std::unordered_set<const void*> seen;
  for (const auto& entry : named)
    if (seen.insert(entry.second.impl()).second) out.push_back(entry);
  return out;
}

std::vector<std::pair<std::string, Tensor>> Module::named_parameters() const {
  Named all;
  collect("", &Module::parameters_, all);
  return without_repeats(all);
}

std::vector<std::pair<std::string, Tensor>> Module::named_buffers() const {
  Named all;
  collect("", &Module::buffers_, all);
  return without_repeats(all);
}

static std::vector<Tensor> without_names(const std::vector<std::pair<std::string, Tensor>>& named) {
  std::vector<Tensor> out;
  for (const auto& [name, tensor] : named) out.push_back(tensor);
  return out;
}
std::vector<Tensor> Module::parameters() const { return without_names(named_parameters()); }
std::vector<Tensor> Module::buffers() const { return without_names(named_buffers()); }

void Module::collect_modules(const std::string& prefix, std::vector<std::pair<std::string, Module*>>& out) {
  out.emplace_back(prefix, this);
  for (const auto& [name, child] : children_)
    child->collect_modules(prefix.empty() ? name : prefix + "." + name, out);
}

std::vector<std::pair<std::string, Module*>> Module::named_modules() {
  std::vector<std::pair<std::string, Module*>> out;
  collect_modules("", out);
  return out;
}

// Data is exchanged under the handles, so members, optimizers and state dicts all see it.
void Module::convert(const std::function<Tensor(const Tensor&)>& f) {
  NoGradGuard no_grad;
  for (Named Module::*what : {&Module::parameters_, &Module::buffers_}) {
    Named all;
    collect("", what, all);
    for (auto& [name, tensor] : all) {
      const Tensor grad = tensor.grad();
      tensor.set_data(f(tensor.detach()));
      if (grad.defined()) tensor.set_grad(f(grad));
    }
  }
}

void Module::to(Device device) {
  convert([&](const Tensor& t) { return t.to(device); });
}

void Module::to(DType dtype) {
  GRADUS_CHECK(is_floating_point(dtype), "E-DTYPE",
               "Module::to: only floating point dtypes are accepted, got ", to_string(dtype));
  convert([&](const Tensor& t) { return t.is_floating_point() ? t.to(dtype) : t; });
}

void Module::train(bool on) {
  training_ = on;
  for (const auto& [name, child] : children_) child->train(on);
}

void Module::zero_grad(bool set_to_none) {
  NoGradGuard no_grad;
  for (Tensor& p : parameters()) {
    Tensor grad = p.grad();
    if (!grad.defined()) continue;
    set_to_none ? p.set_grad({}) : static_cast<void>(grad.zero_());
  }
}

void Module::requires_grad_(bool on) {
  for (Tensor& p : parameters()) p.requires_grad_(on);
}

void Module::apply(const std::function<void(Module&)>& f) {
  for (const auto& [name, child] : children_) child->apply(f);
  f(*this);
}

StateDict Module::state_dict() const {
  Named all;
  collect("", &Module::parameters_, all);
  collect("", &Module::buffers_, all);
  StateDict state;
  for (const auto& [name, tensor] : all) state.add(name, tensor.detach());
  return state;
}

static std::string join(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "\"" : ", \"") + name + "\"";
  return text;
}

IncompatibleKeys Module::load_state_dict(const StateDict& state, bool strict) {
  const StateDict mine = state_dict();
  IncompatibleKeys keys;
  std::string problems;
  for (const auto& [name, tensor] : mine) {
    const Tensor* given = state.find(name);
    if (!given) {
      keys.missing.push_back(name);
    } else if (given->sizes() != tensor.sizes()) {
      problems += str("\n  size mismatch for ", name, ": the saved shape is ", given->sizes(),
                      ", the model's is ", tensor.sizes(), ".");
    }
  }
  for (const auto& [name, tensor] : state)
    if (!mine.contains(name)) keys.unexpected.push_back(name);
  if (strict && !keys.missing.empty()) problems += "\n  missing key(s): " + join(keys.missing) + ".";
  if (strict && !keys.unexpected.empty()) problems += "\n  unexpected key(s): " + join(keys.unexpected) + ".";
  GRADUS_CHECK(problems.empty(), "E-STATE-DICT", "load_state_dict: the saved state does not fit ", describe(),
               ":", problems,
               hint("load it into the model it was saved from, or pass strict=false to take what matches"));
  NoGradGuard no_grad;
  size_t matched = 0;
  for (const auto& [name, tensor] : mine) {
    if (const Tensor* given = state.find(name)) {
      Tensor target = tensor;
      target.copy_(*given);
      ++matched;
    }
  }
  if (matched == 0 && !state.empty() && !mine.empty())
    warn("load_state_dict: none of the ", state.size(), " saved names is in the model; nothing was loaded");
  return keys;
}

void Module::check_name(const std::string& name) const {
  GRADUS_CHECK(!name.empty() && name.find('.') == name.npos, "E-ARG", "Module: '", name, "' cannot be a name",
               hint("names are not empty and hold no dot"));
  const auto same = [&](const auto& entry) { return entry.first == name; };
  GRADUS_CHECK(std::none_of(parameters_.begin(), parameters_.end(), same) &&
                   std::none_of(buffers_.begin(), buffers_.end(), same) &&
                   std::none_of(children_.begin(), children_.end(), same),
               "E-ARG", "Module: '", name, "' is registered already");
}

Tensor Module::register_parameter(std::string name, Tensor parameter, bool requires_grad) {
  check_name(name);
  if (parameter.defined() && requires_grad) parameter.requires_grad_();
  parameters_.emplace_back(std::move(name), parameter);
  return parameter;
}

Tensor Module::register_buffer(std::string name, Tensor buffer) {
  check_name(name);
  buffers_.emplace_back(std::move(name), buffer);
  return buffer;
}

void Module::add_child(std::string name, std::shared_ptr<Module> module) {
  check_name(name);
  GRADUS_CHECK(module, "E-ARG", "register_module: '", name, "' is empty");
  for (const auto& [below, part] : module->named_modules())
    GRADUS_CHECK(part != this, "E-ARG", "register_module: '", name,
                 "' holds the module that it is to be part of", hint("a module cannot contain itself"));
  children_.emplace_back(std::move(name), std::move(module));
}

static void print(const Module& module, const std::string& indent, std::string& text) {
  const std::string name = module.describe();
  const auto children = module.named_children();
  text += name;
  if (children.empty()) {
    text += name.ends_with(')') ? "" : "()";
    return;
  }
  text += "(\n";
  for (const auto& [name, child] : children) {
    text += indent + "  (" + name + "): ";
    print(*child, indent + "  ", text);
    text += "\n";
  }
  text += indent + ")";
}

std::string to_string(const Module& module) {
  std::string text;
  print(module, "", text);
  return text;
}

}  // namespace gradus::nn
