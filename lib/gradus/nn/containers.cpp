#include <gradus/nn/containers.h>

namespace gradus::nn {

Module& detail::module_at(const std::vector<std::shared_ptr<Module>>& modules, size_t i) {
  GRADUS_CHECK(i < modules.size(), "E-INDEX", "Module: index ", i, " is out of range for ", modules.size(),
               " modules");
  return *modules[i];
}

Tensor SequentialImpl::forward(const Tensor& input) {
  Tensor x = input;
  for (const auto& module : modules_) x = (*module)(x);
  return x;
}

void SequentialImpl::append(std::shared_ptr<Module> module) {
  add_child(str(modules_.size()), module);
  modules_.push_back(std::move(module));
}

void ModuleListImpl::append(std::shared_ptr<Module> module) {
  add_child(str(modules_.size()), module);
  modules_.push_back(std::move(module));
}

}  // namespace gradus::nn
