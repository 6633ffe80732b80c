// A model on several devices of one process, as torch.nn.DataParallel: in each forward pass the batch is cut,
// the model's parameters are copied to every device, replicas run side by side, and their outputs are
// gathered on the first device. Lesson 05 counts what that costs.
#pragma once
#include <gradus/nn/module.h>
#include <gradus/nn/scatter_gather.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace gradus::nn {

namespace detail {

/// What DataParallel does that depends on no type.
class Replicas {
 public:
  using Make = std::function<std::shared_ptr<Module>()>;
  /// Throws E-ARG for no device, one named twice, or devices of several types.
  Replicas(Make make, std::vector<Device> devices);

  const std::vector<Device>& devices() const { return devices_; }
  const std::shared_ptr<Module>& module() const { return module_; }
  /// Calls f(replica, i) for the first `n` devices at once, each on a thread of its own with the grad mode of
  /// this one and its device as the current one, and rethrows the first device's exception. `rows` is how
  /// many rows of the batch each has. Before, the module's parameters and buffers are copied to the others.
  void run(const std::vector<int64_t>& rows, const std::function<void(Module&, size_t)>& f);

 private:
  // One replica for each device but the first, which has the module itself.
  struct Set {
    std::vector<std::shared_ptr<Module>> modules;
    std::vector<int32_t> handles;  // to each parameter, where no graph holds one
  };
  void check_devices() const;
  Set make_set() const;
  const Set& replicate(size_t n);

  Make make_;
  std::vector<Device> devices_;
  std::shared_ptr<Module> module_;
  std::vector<Set> sets_;  // more than one where a forward pass begins before the last one's graph is gone
};

}  // namespace detail

/// `make` makes a model: `nn::DataParallel model([] { return std::make_shared<Net>(); }, devices)`. (C++
/// cannot copy a module whose class it does not know, so it is called once for each device; the values of all
/// but the first do not matter.) The model must be on devices[0] before forward(): model.to(devices[0]).
///
/// - Rows of the batch go to the devices as by chunk(): 10 over 4 are 3 + 3 + 3 + 1, and of 3 rows the fourth
///   device gets none. With one part the model itself runs, on this thread.
/// - Gradients of all replicas are added, in the order of the devices, to the model's own .grad.
/// - Buffers are the first device's: what replicas write into theirs is lost, as in PyTorch.
/// - Dropout drops what one device would drop of the whole batch. Hooks of the model run on the first device.
/// - parameters() are the model's; state_dict() has its names behind "module.". Not for use by two threads.
template <class M>
class DataParallel : public Module {
 public:
  template <class Make>
  DataParallel(const Make& make, std::vector<Device> devices) : replicas_(make, std::move(devices)) {
    register_module("module", replicas_.module());
  }

  /// The model, on devices[0].
  M& module() { return static_cast<M&>(*replicas_.module()); }
  const std::vector<Device>& devices() const { return replicas_.devices(); }

  /// x (N, …), on any device -> the outputs of all rows, on devices[0]. Throws E-DEVICE-MISMATCH where the
  /// model is not on devices[0]; what a replica throws.
  Tensor forward(const Tensor& x) override {
    return run([](M& model, const Tensor& part) { return model(part); }, x);
  }

  /// f(model, parts of each input…) on every device, for forward passes that take several tensors or give
  /// more than one: tuples, lists and maps of tensors are gathered entry by entry. Inputs have equally many
  /// rows, else E-SHAPE.
  template <class F, class... X>
  auto run(const F& f, const Tensor& x, const X&... more) {
    const std::vector<std::vector<Tensor>> inputs = scatter({x, more...});
    std::vector<int64_t> rows;
    for (const Tensor& part : inputs[0]) rows.push_back(part.size(0));
    using Output = std::invoke_result_t<const F&, M&, const Tensor&, const X&...>;
    std::vector<std::optional<Output>> outputs(rows.size());
    replicas_.run(rows, [&](Module& replica, size_t i) {
      outputs[i] = [&]<size_t... K>(std::index_sequence<K...>) {
        return f(static_cast<M&>(replica), inputs[K][i]...);
      }
      (std::make_index_sequence<1 + sizeof...(X)>());
    });
    std::vector<Output> parts;
    for (auto& output : outputs) parts.push_back(std::move(*output));
    return parallel::gather(parts, devices()[0]);
  }

 private:
  std::vector<std::vector<Tensor>> scatter(const std::vector<Tensor>& inputs) const {
    std::vector<std::vector<Tensor>> parts;
    for (const Tensor& input : inputs) {
      parts.push_back(parallel::scatter(input, devices()));
      GRADUS_CHECK(input.size(0) == inputs[0].size(0), "E-SHAPE",
                   "DataParallel: the inputs must have equally many rows, got ", inputs[0].sizes(), " and ",
                   input.sizes());
    }
    return parts;
  }

  detail::Replicas replicas_;
};

template <class Make>
DataParallel(const Make&, std::vector<Device>)
    -> DataParallel<typename std::invoke_result_t<const Make&>::element_type>;

}  // namespace gradus::nn
