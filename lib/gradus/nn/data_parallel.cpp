#include <gradus/base/random_scope.h>
#include <gradus/nn/data_parallel.h>
#include <gradus/ops/autocast.h>
#include <gradus/ops/factories.h>
#include <gradus/runtime/device_info.h>
#include <gradus/tensor/grad_mode.h>
#include <gradus/tensor/node.h>
#include <gradus/tensor/sequence.h>

#include <algorithm>
#include <exception>
#include <thread>

namespace gradus::nn::detail {
namespace {

// Parameters, then buffers.
std::vector<std::pair<std::string, Tensor>> state_of(const Module& module) {
  auto state = module.named_parameters();
  for (auto& buffer : module.named_buffers()) state.push_back(std::move(buffer));
  return state;
}

void check_alike(const Module& model, const Module& replica) {
  const auto a = state_of(model), b = state_of(replica);
  for (size_t k = 0; k < std::max(a.size(), b.size()); ++k) {
    const std::string& name = (k < a.size() ? a : b)[k].first;
    GRADUS_CHECK(
        k < a.size() && k < b.size() && b[k].first == name && a[k].second.sizes() == b[k].second.sizes(),
        "E-ARG", "DataParallel: the function makes models that differ: at ", name,
        hint("make the same layers, in the same order and of the same sizes, each time"));
    GRADUS_CHECK(!a[k].second.is_same(b[k].second), "E-ARG", "DataParallel: two models share ", name,
                 hint("make new layers each time"));
  }
}

// The replica's tensor becomes a copy of the model's, from which gradients flow back.
void copy_to(Tensor replica, const Tensor& own, Device device) {
  if (replica.device() != device || replica.dtype() != own.dtype() || replica.strides() != own.strides()) {
    NoGradGuard no_grad;
    replica.set_data(empty_strided(own.sizes(), own.strides(), own.dtype(), device));
  }
  replica.copy_(own, /*non_blocking=*/true);
}

// What a thread that works for this one must know.
struct ThreadState {
  bool grad = GradMode::is_enabled(), inference = InferenceMode::is_enabled();
  ops::AutocastSettings autocast = ops::detail::autocast_settings;

  void run(Device device, const std::function<void()>& f) const {
    set_device(device);
    std::optional<InferenceMode> inference_mode;
    if (inference) inference_mode.emplace();
    const AutoGradMode grad_mode(grad);
    const ops::AutocastScope autocast_scope(autocast);
    f();
  }
};

// Ends with what all threads have: they are waited for also where this one throws.
class Threads {
 public:
  ~Threads() { join(); }
  void start(const std::function<void()>& f) { threads_.emplace_back(f); }
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  std::vector<std::thread> threads_;
};

}  // namespace

Replicas::Replicas(Make make, std::vector<Device> devices)
    : make_(std::move(make)), devices_(std::move(devices)) {
  GRADUS_CHECK(!devices_.empty(), "E-ARG", "DataParallel: expected at least one device, got none");
  for (size_t i = 1; i < devices_.size(); ++i) {
    GRADUS_CHECK(devices_[i].type() == devices_[0].type(), "E-ARG",
                 "DataParallel: expected devices of one type, got ", devices_[0], " and ", devices_[i]);
    GRADUS_CHECK(std::find(devices_.begin(), devices_.begin() + static_cast<std::ptrdiff_t>(i),
                           devices_[i]) == devices_.begin() + static_cast<std::ptrdiff_t>(i),
                 "E-ARG", "DataParallel: ", devices_[i], " is named twice");
  }
  module_ = make_();
  GRADUS_CHECK(module_, "E-ARG", "DataParallel: the function made no model");
}

void Replicas::check_devices() const {
  for (const auto& [name, tensor] : state_of(*module_))
    GRADUS_CHECK(tensor.device() == devices_[0], "E-DEVICE-MISMATCH",
                 "DataParallel: module must have its parameters and buffers on device ", devices_[0],
                 " (devices[0]) but found ", name, " on device: ", tensor.device(),
                 hint("call model.to(Device(\"", to_string(devices_[0]), "\")) first"));
}

// What initialisation draws is thrown away, so it is drawn from elsewhere.
Replicas::Set Replicas::make_set() const {
  Generator unused;
  const GeneratorGuard guard(unused);
  Set set;
  for (size_t i = 1; i < devices_.size(); ++i) {
    set.modules.push_back(make_());
    GRADUS_CHECK(set.modules.back(), "E-ARG", "DataParallel: the function made no model");
    check_alike(*module_, *set.modules.back());
    for (auto& [name, tensor] : state_of(*set.modules.back())) {
      tensor.detach_();
      set.handles.push_back(tensor.impl()->use_count());
    }
  }
  return set;
}

const Replicas::Set& Replicas::replicate(size_t n) {
  const auto in_use = [](const Set& set) {
    size_t k = 0;
    for (const auto& module : set.modules)
      for (const auto& [name, tensor] : state_of(*module))
        if (tensor.impl()->use_count() > set.handles[k++]) return true;
    return false;
  };
  auto set = std::find_if_not(sets_.begin(), sets_.end(), in_use);
  if (set == sets_.end()) set = sets_.insert(set, make_set());

  const auto own = state_of(*module_);
  const auto own_modules = module_->named_modules();
  for (size_t i = 1; i < n; ++i) {
    Module& replica = *set->modules[i - 1];
    const auto copies = state_of(replica);
    for (size_t k = 0; k < own.size(); ++k) {
      Tensor copy = copies[k].second;
      copy.detach_();
      copy_to(copy, own[k].second, devices_[i]);
    }
    const auto modules = replica.named_modules();
    for (size_t k = 0; k < modules.size(); ++k)
      modules[k].second->train(own_modules[k].second->is_training());
  }
  return *set;
}

void Replicas::run(const std::vector<int64_t>& rows, const std::function<void(Module&, size_t)>& f) {
  check_devices();
  if (rows.size() == 1) return f(*module_, 0);

  const Set& set = replicate(rows.size());
  const Generator::State before = default_generator().get_state();
  std::vector<Generator> generators(rows.size());
  std::vector<std::exception_ptr> errors(rows.size());
  const ThreadState state;
  const uint64_t start = next_sequence();
  std::vector<uint64_t> ends(rows.size());
  const auto work = [&](size_t i) {
    const GeneratorGuard generator(generators[i]);
    int64_t first = 0;
    for (size_t k = 0; k < i; ++k) first += rows[k];
    const BatchPartGuard part({first, rows[i]});
    set_next_sequence(start);
    try {
      state.run(devices_[i], [&] { f(i == 0 ? *module_ : *set.modules[i - 1], i); });
    } catch (...) {
      errors[i] = std::current_exception();
    }
    ends[i] = next_sequence();
  };
  {
    Threads threads;
    for (size_t i = 0; i < rows.size(); ++i) {
      generators[i].set_state(before);
      threads.start([&work, i] { work(i); });
    }
  }
  set_next_sequence(*std::max_element(ends.begin(), ends.end()));
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  default_generator().set_state(generators[0].get_state());
}

}  // namespace gradus::nn::detail
