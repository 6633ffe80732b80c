// The tape's records. An op that wants a gradient calls record<XBackward>(outputs, inputs).save(…); the
// walker that runs them is autograd/backward.cpp.
#pragma once
#include <gradus/tensor/grad_mode.h>
#include <gradus/tensor/tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace gradus {

/// Frees a node whose last owner is gone, and what it alone kept alive, without recursion.
void release(Node* node);

/// Where a gradient flows to: input number `input` of `node`. No node: nobody wants it.
struct Edge {
  Intrusive<Node> node;
  uint32_t input = 0;
};

/// A tensor kept for the backward pass, with the version it had.
class SavedTensor {
 public:
  SavedTensor() = default;
  /// `is_output`: an output of the node that saves it. It is kept without its history, or node and tensor
  /// would own each other.
  SavedTensor(const Tensor& tensor, bool is_output);
  /// The tensor; throws E-INPLACE naming `node`'s op and the shape if it was changed in place since (and both
  /// versions) or was given other data by set_data(), as module.to() does.
  Tensor unpack(const Node* node) const;

 private:
  friend class Recorder;

  Tensor tensor_;
  uint64_t storage_id_ = 0;  // set_data() gives a tensor another storage
  uint32_t version_ = 0;
  bool is_output_ = false;
  uint32_t output_nr_ = 0;
};

/// One recorded operation: its name, where each input's gradient goes, and what it saved.
class Node : public RefCounted {
 public:
  Node();
  virtual ~Node();

  /// "MulBackward"
  virtual const char* name() const = 0;
  /// Gradients of the inputs, given those of the outputs (undefined ones mean zero). Entries of inputs that
  /// want none may stay undefined; see wants().
  virtual TensorList backward(const TensorList& grads) = 0;
  /// False where backward() is not made of differentiable operations: then create_graph is refused.
  virtual bool differentiable() const { return true; }
  /// Drops what was saved; backward() cannot run again.
  virtual void release_saved();

  /// Keeps `tensor` for backward(), where saved(i) gives it back: i counts the calls.
  Node& save(const Tensor& tensor);
  Tensor saved(size_t i) const;
  /// True when input i's gradient is asked for.
  bool wants(size_t i) const { return i < edges_.size() && edges_[i].node; }

  const SmallVector<Edge, 3>& edges() const { return edges_; }
  uint64_t sequence() const { return sequence_; }
  uint32_t output_count() const { return output_count_; }

  /// Called with the gradient of output `output` before backward(); a defined result replaces it.
  using Hook = std::function<Tensor(const Tensor&)>;
  void add_hook(uint32_t output, Hook hook);
  void run_hooks(TensorList& grads) const;

  /// Nodes alive in the process: 0 when no graph and no leaf that requires grad is left.
  static int64_t live_count();

 protected:
  struct Leaf {};
  explicit Node(Leaf);  // of a leaf: runs as soon as its gradient is complete

 private:
  friend void release(Node* node);
  friend class Recorder;
  friend class BackwardPass;

  SmallVector<Edge, 3> edges_;
  SmallVector<SavedTensor, 3> saved_;
  std::unique_ptr<std::vector<std::pair<uint32_t, Hook>>> hooks_;
  uint64_t sequence_;
  uint32_t output_count_ = 1;
  bool released_ = false;
  // Scratch of the backward pass that runs now; see autograd/backward.cpp.
  uint64_t pass_ = 0;
  uint32_t slot_ = 0;
};

/// The end of the tape at a leaf: adds what arrives to the leaf's gradient.
struct AccumulateGrad : Node {
  explicit AccumulateGrad(const Tensor& leaf);
  const char* name() const override { return "AccumulateGrad"; }
  /// Adds grads[0] to `grad`, in the leaf's layout. Defined in autograd/backward.cpp.
  TensorList backward(const TensorList& grads) override;
  void release_saved() override {}

  Shape sizes, strides;  // the leaf's
  Tensor grad;
  std::vector<std::function<void(const Tensor&)>> post_hooks;
};

/// Does the wiring of record(); see there.
class Recorder {
 public:
  static void connect(Node& node, std::span<const Tensor> inputs);
  static void own(Intrusive<Node> node, Tensor& output, uint32_t number);
  /// Before `self` is overwritten in place by what `node` computed: lets the node keep a copy of `self` as it
  /// was, if it saved it. (Saving the tensor itself would make the two own each other.)
  static void keep_before_overwrite(Node& node, const Tensor& self);
  static void set_output_count(Node& node, uint32_t n) { node.output_count_ = n; }
};

/// Where the gradient of `tensor` goes; no node if it wants none. Throws E-INPLACE for a view whose base was
/// changed in place after the view was made: its history no longer tells its value.
Edge gradient_edge(const Tensor& tensor);

/// True when recording is on and one of the tensors requires grad.
template <class... T>
bool wants_grad(const T&... tensors) {
  return detail::grad_enabled && ((tensors.defined() && tensors.requires_grad()) || ...);
}
inline bool wants_grad(std::span<const Tensor> tensors) {
  if (!detail::grad_enabled) return false;
  for (const Tensor& t : tensors)
    if (t.defined() && t.requires_grad()) return true;
  return false;
}

/// Makes a B(args…), points it at the inputs' histories and makes it the history of the outputs. Undefined
/// inputs and outputs are skipped but keep their number. Call it after the outputs were computed.
template <class B, class... A>
B& record(std::span<Tensor> outputs, std::span<const Tensor> inputs, A&&... args) {
  B* node = new B(std::forward<A>(args)...);
  Intrusive<Node> owner(node);
  Recorder::connect(*node, inputs);
  Recorder::set_output_count(*node, static_cast<uint32_t>(outputs.size()));
  for (uint32_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].defined()) Recorder::own(owner, outputs[i], i);
  return *node;
}
template <class B, class... A>
B& record(Tensor& output, std::initializer_list<Tensor> inputs, A&&... args) {
  return record<B>(std::span(&output, 1), std::span(inputs.begin(), inputs.size()), std::forward<A>(args)...);
}
template <class B, class... A>
B& record(Tensor& output, const Tensor& input, A&&... args) {
  return record<B>(std::span(&output, 1), std::span(&input, 1), std::forward<A>(args)...);
}

/// To be called by every in-place operation before it changes anything. `others` are its other tensor inputs.
/// Throws E-INPLACE for a leaf that requires grad, a view of one, a view whose base has a history (or would
/// get one), and an expanded tensor, whose elements share memory.
void check_inplace(const Tensor& self, const char* op, std::span<const Tensor> others = {});

}  // namespace gradus
