// The base of models and layers, as torch::nn::Module.
#pragma once
#include <gradus/tensor/state_dict.h>
#include <gradus/tensor/tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gradus::nn {

/// What load_state_dict() found: names the module has and the file has not, and the other way round.
struct IncompatibleKeys {
  std::vector<std::string> missing, unexpected;
};

/// A part of a model: named parameters, buffers and sub-modules, and a forward(). A model derives from it,
/// registers what it holds, and defines forward():
///   struct Net : nn::Module {
///     nn::Linear fc = register_module("fc", nn::Linear(784, 10));
///     Tensor forward(const Tensor& x) override { return fc(x.flatten(1)); }
///   };
/// Only what is registered is found by parameters(), to(), state_dict() and the optimizer. A registered
/// Tensor is a handle, so to() moves the member too. Not copyable: two models with one set of parameters are
/// rarely wanted.
class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  virtual Tensor forward(const Tensor& input);
  /// forward() between the hooks.
  Tensor operator()(const Tensor& input);
  /// The class, for printing: "Linear(in_features=784, out_features=10, bias=True)"; of a class that does not
  /// say, its name in C++.
  virtual std::string describe() const;

  // What it holds. Names are joined with dots: "net.0.weight". Parameters come before those of sub-modules. A
  // tensor that two layers share is listed once; state_dict() has it under both names, as in PyTorch.
  std::vector<Tensor> parameters() const;
  std::vector<std::pair<std::string, Tensor>> named_parameters() const;
  std::vector<Tensor> buffers() const;
  std::vector<std::pair<std::string, Tensor>> named_buffers() const;
  /// Direct sub-modules, and this module with all below it.
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> named_children() const { return children_; }
  std::vector<std::pair<std::string, Module*>> named_modules();

  /// Moves or converts all parameters and buffers in place; gradients follow. Integer buffers keep their
  /// dtype.
  void to(Device device);
  void to(DType dtype);
  void cpu() { to(Device("cpu")); }
  void cuda() { to(Device("cuda")); }
  void half() { to(kFloat16); }

  /// Training mode (dropout drops, batch norm uses the batch), here and below.
  void train(bool on = true);
  void eval() { train(false); }
  bool is_training() const { return training_; }
  void zero_grad(bool set_to_none = true);
  void requires_grad_(bool on = true);
  /// Calls f on every module below and then on this one.
  void apply(const std::function<void(Module&)>& f);

  /// Parameters and buffers by name, sharing memory with the module.
  StateDict state_dict() const;
  /// Copies the values in, whatever device either side is on. With `strict`, throws E-STATE-DICT that lists
  /// every missing and unexpected name; a differing shape always throws. Nothing is changed if it throws. A
  /// lenient load that matches no name warns.
  IncompatibleKeys load_state_dict(const StateDict& state, bool strict = true);

  /// `hook(module, input)` before forward; a defined result replaces the input.
  using PreHook = std::function<Tensor(Module&, const Tensor&)>;
  /// `hook(module, input, output)` after forward; a defined result replaces the output.
  using Hook = std::function<Tensor(Module&, const Tensor&, const Tensor&)>;
  void register_forward_pre_hook(PreHook hook) { pre_hooks_.push_back(std::move(hook)); }
  void register_forward_hook(Hook hook) { hooks_.push_back(std::move(hook)); }

  /// Registers a tensor that is trained; an undefined one is an absent option (bias = false).
  Tensor register_parameter(std::string name, Tensor parameter, bool requires_grad = true);
  /// Registers a tensor that is saved and moved with the model but not trained.
  Tensor register_buffer(std::string name, Tensor buffer);
  /// Registers a layer (nn::Linear …) or a std::shared_ptr to a module, and returns it.
  template <class M>
  M register_module(std::string name, M module) {
    add_child(std::move(name), as_module(module));
    return module;
  }

 protected:
  void add_child(std::string name, std::shared_ptr<Module> module);
  template <class M>
  static std::shared_ptr<Module> as_module(const M& m) {
    if constexpr (requires { m.ptr(); }) {
      return m.ptr();
    } else {
      return m;
    }
  }

 private:
  using Named = std::vector<std::pair<std::string, Tensor>>;
  void collect(const std::string& prefix, Named Module::*what, Named& out) const;
  void collect_modules(const std::string& prefix, std::vector<std::pair<std::string, Module*>>& out);
  void check_name(const std::string& name) const;
  void convert(const std::function<Tensor(const Tensor&)>& f);

  Named parameters_, buffers_;
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> children_;
  std::vector<PreHook> pre_hooks_;
  std::vector<Hook> hooks_;
  bool training_ = true;
};

/// The printed tree of a model.
std::string to_string(const Module& module);

/// A layer as a value: a shared pointer to its module that can be called. nn::Linear is Holder<LinearImpl>.
template <class Impl>
class Holder {
 public:
  /// Makes the module from its constructor's arguments.
  template <class... A>
  requires std::constructible_from<Impl, A...>
  explicit(sizeof...(A) == 1) Holder(A&&... a) : impl_(std::make_shared<Impl>(std::forward<A>(a)...)) {}
  /// Shares a module that exists.
  explicit Holder(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

  Tensor operator()(const Tensor& x) const { return (*impl_)(x); }
  Impl* operator->() const { return impl_.get(); }
  Impl& operator*() const { return *impl_; }
  const std::shared_ptr<Impl>& ptr() const { return impl_; }
  friend std::string to_string(const Holder& layer) { return to_string(*layer); }

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace gradus::nn
