// Modules made of modules.
#pragma once
#include <gradus/nn/module.h>

namespace gradus::nn {

namespace detail {
/// Throws E-INDEX.
Module& module_at(const std::vector<std::shared_ptr<Module>>& modules, size_t i);
}  // namespace detail

/// Runs its modules one after the other; they are named 0, 1, …
class SequentialImpl : public Module {
 public:
  template <class... M>
  explicit SequentialImpl(const M&... modules) {
    (push_back(modules), ...);
  }
  Tensor forward(const Tensor& input) override;
  std::string describe() const override { return "Sequential"; }
  /// Appends a layer or a std::shared_ptr to a module.
  template <class M>
  void push_back(const M& module) {
    append(as_module(module));
  }
  size_t size() const { return modules_.size(); }
  Module& operator[](size_t i) const { return detail::module_at(modules_, i); }

 private:
  void append(std::shared_ptr<Module> module);
  std::vector<std::shared_ptr<Module>> modules_;
};
class Sequential : public Holder<SequentialImpl> {
 public:
  template <class... M>
  explicit Sequential(const M&... modules) : Holder(std::make_shared<SequentialImpl>(modules...)) {}
};

/// A list of modules that are registered, unlike those in a std::vector; it has no forward().
class ModuleListImpl : public Module {
 public:
  template <class... M>
  explicit ModuleListImpl(const M&... modules) {
    (push_back(modules), ...);
  }
  std::string describe() const override { return "ModuleList"; }
  template <class M>
  void push_back(const M& module) {
    append(as_module(module));
  }
  size_t size() const { return modules_.size(); }
  Module& operator[](size_t i) const { return detail::module_at(modules_, i); }
  auto begin() const { return modules_.begin(); }
  auto end() const { return modules_.end(); }

 private:
  void append(std::shared_ptr<Module> module);
  std::vector<std::shared_ptr<Module>> modules_;
};
class ModuleList : public Holder<ModuleListImpl> {
 public:
  template <class... M>
  explicit ModuleList(const M&... modules) : Holder(std::make_shared<ModuleListImpl>(modules...)) {}
};

}  // namespace gradus::nn
