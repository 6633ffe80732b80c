#include <gradus/nn/containers.h>

namespace gradus::nn {

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
