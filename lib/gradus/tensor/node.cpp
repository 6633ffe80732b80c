#include <gradus/tensor/node.h>
#include <gradus/tensor/sequence.h>

#include <atomic>

namespace gradus {
namespace {

std::atomic<int64_t> live{0};
thread_local uint64_t sequence_of_thread = 1;

}  // namespace

detail::TensorImpl::TensorImpl() = default;
detail::TensorImpl::~TensorImpl() = default;

SavedTensor::SavedTensor(const Tensor& tensor, bool is_output)
    : tensor_(is_output ? tensor.detach() : tensor),
      storage_id_(tensor.impl()->storage->id()),
      version_(tensor.version()),
      is_output_(is_output),
      output_nr_(tensor.impl()->output_nr) {}

Tensor SavedTensor::unpack(const Node* node) const {
  if (!tensor_.defined()) return {};
  GRADUS_CHECK(
      tensor_.impl()->storage->id() == storage_id_, "E-INPLACE", node->name(),
      ": one of the variables needed for gradient computation was given other data by set_data(): the "
      "input of shape ",
      tensor_.sizes(), hint("call set_data(), or module.to(), before forward() or after backward()"));
  GRADUS_CHECK(tensor_.version() == version_, "E-INPLACE", node->name(),
               ": one of the variables needed for gradient computation has been modified by an inplace "
               "operation: the ",
               is_output_ ? "output" : "input", " of shape ", tensor_.sizes(), " is at version ",
               tensor_.version(), ", expected version ", version_,
               hint("use the out-of-place operation, or clone() the tensor before changing it"));
  if (!is_output_) return tensor_;
  Tensor output = tensor_.detach();
  output.impl()->grad_fn = Intrusive<Node>(const_cast<Node*>(node));
  output.impl()->output_nr = output_nr_;
  return output;
}

uint64_t next_sequence() { return sequence_of_thread; }
void set_next_sequence(uint64_t sequence) { sequence_of_thread = sequence; }

Node::Node() : sequence_(sequence_of_thread++) { live.fetch_add(1, std::memory_order_relaxed); }
Node::Node(Leaf) : sequence_(~uint64_t{0}) { live.fetch_add(1, std::memory_order_relaxed); }
Node::~Node() { live.fetch_sub(1, std::memory_order_relaxed); }
int64_t Node::live_count() { return live.load(std::memory_order_relaxed); }

void Node::release_saved() {
  saved_.clear();
  released_ = true;
}

Node& Node::save(const Tensor& tensor) {
  GRADUS_CHECK(!tensor.defined() || !tensor.impl()->inference, "E-INFERENCE", name(),
               ": Inference tensors cannot be saved for backward; one has shape ", tensor.sizes(),
               hint("clone() it outside InferenceMode to make a normal tensor"));
  if (!tensor.defined()) {
    saved_.emplace_back();
  } else {
    saved_.emplace_back(tensor, tensor.impl()->grad_fn.get() == this);
  }
  return *this;
}

Tensor Node::saved(size_t i) const {
  GRADUS_CHECK(
      !released_, "E-GRAPH-FREED", name(),
      ": Trying to backward through the graph a second time: its saved values have already been freed",
      hint("pass retain_graph=true to the first backward()"));
  return saved_[i].unpack(this);
}

void Node::add_hook(uint32_t output, Hook hook) {
  if (!hooks_) hooks_ = std::make_unique<std::vector<std::pair<uint32_t, Hook>>>();
  hooks_->emplace_back(output, std::move(hook));
}

void Node::run_hooks(TensorList& grads) const {
  if (!hooks_) return;
  for (const auto& [output, hook] : *hooks_) {
    if (!grads[output].defined()) continue;
    Tensor replaced = hook(grads[output]);
    if (!replaced.defined()) continue;
    GRADUS_CHECK(replaced.sizes() == grads[output].sizes(), "E-GRAD",
                 "hook: it returned a gradient of shape ", replaced.sizes(), " for one of shape ",
                 grads[output].sizes(), hint("they must be equal"));
    GRADUS_CHECK(replaced.dtype() == grads[output].dtype() && replaced.device() == grads[output].device(),
                 "E-GRAD", "hook: it returned a gradient of ", to_string(replaced.dtype()), " on ",
                 replaced.device(), " for one of ", to_string(grads[output].dtype()), " on ",
                 grads[output].device(), hint("they must be equal"));
    grads[output] = std::move(replaced);
  }
}

// A long chain freed by recursion overflows the stack. So the outermost release() on a thread frees in a
// loop, and the ones it sets off only add to the list.
void release(Node* node) {
  thread_local std::vector<Node*>* pending = nullptr;
  if (pending) {
    pending->push_back(node);
    return;
  }
  std::vector<Node*> list;
  pending = &list;
  delete node;
  while (!list.empty()) {
    Node* next = list.back();
    list.pop_back();
    delete next;
  }
  pending = nullptr;
}

AccumulateGrad::AccumulateGrad(const Tensor& leaf)
    : Node(Leaf{}), sizes(leaf.sizes()), strides(leaf.strides()) {}

Edge gradient_edge(const Tensor& tensor) {
  if (!tensor.defined()) return {};
  auto* impl = tensor.impl();
  if (impl->base) {
    const bool base_in_graph = impl->base->grad_fn || impl->base->requires_grad;
    GRADUS_CHECK(!base_in_graph || impl->view_version == tensor.version(), "E-INPLACE",
                 "autograd: a view of shape ", tensor.sizes(),
                 " is used after its base was changed in place (version ", tensor.version(),
                 ", the view was made at ", impl->view_version, ")",
                 hint("make the view again after the in-place operation"));
  }
  if (impl->grad_fn) return {impl->grad_fn, impl->output_nr};
  if (!impl->requires_grad) return {};
  return {impl->leaf, 0};
}

void Recorder::connect(Node& node, std::span<const Tensor> inputs) {
  node.edges_.reserve(inputs.size());
  for (const Tensor& t : inputs) node.edges_.push_back(gradient_edge(t));
}

void Recorder::keep_before_overwrite(Node& node, const Tensor& self) {
  for (SavedTensor& saved : node.saved_) {
    if (!saved.tensor_.is_same(self)) continue;
    Tensor before = self.detach().clone();
    before.impl()->grad_fn = self.impl()->grad_fn;
    before.impl()->output_nr = self.impl()->output_nr;
    saved = SavedTensor(before, false);
  }
}

void Recorder::own(Intrusive<Node> node, Tensor& output, uint32_t number) {
  auto* impl = output.impl();
  impl->grad_fn = std::move(node);
  impl->output_nr = number;
}

// What expand() makes: elements that share a place in memory would be written several times.
static bool overlaps_itself(const Tensor& t) {
  for (int d = 0; d < t.dim(); ++d)
    if (t.sizes()[d] > 1 && t.strides()[d] == 0) return true;
  return false;
}

void check_inplace(const Tensor& self, const char* op, std::span<const Tensor> others) {
  auto* impl = self.impl();
  GRADUS_CHECK(!overlaps_itself(self), "E-INPLACE", op,
               ": unsupported operation: more than one element of the written-to tensor refers to a single "
               "memory location; it has shape ",
               self.sizes(), " and strides ", self.strides(), hint("clone() it first"));
  if (!detail::grad_enabled) return;
  GRADUS_CHECK(!impl->requires_grad, "E-INPLACE", op,
               ": a leaf Variable that requires grad is being used in an in-place operation; its shape is ",
               self.sizes(), hint("do it inside a NoGradGuard, or use the out-of-place operation"));
  if (!impl->base) return;
  const auto* base = impl->base.get();
  GRADUS_CHECK(
      !base->requires_grad, "E-INPLACE", op,
      ": a view of a leaf Variable that requires grad is being used in an in-place operation; the view's "
      "shape is ",
      self.sizes(), hint("do it inside a NoGradGuard, or use the out-of-place operation"));
  GRADUS_CHECK(!base->grad_fn && !impl->grad_fn && !wants_grad(others), "E-INPLACE", op,
               ": an in-place operation on a view of shape ", self.sizes(), " of a tensor of shape ",
               base->sizes, " that is part of a graph is not supported",
               hint("build the result out of place, for example with where(), cat() or stack()"));
}

}  // namespace gradus
