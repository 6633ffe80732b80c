#include <gradus/autograd/backward.h>
#include <gradus/ops/autocast.h>
#include <gradus/ops/factories.h>
#include <gradus/tensor/node.h>
#include <gradus/tensor/views.h>

#include <algorithm>
#include <mutex>
#include <utility>

namespace gradus {

// One walk of the tape.
//   discover  depth first from the roots: every node gets a slot, and the number of gradients it will receive
//   prune     grad(): nodes that lead to no wanted input are left out
//   run       a ready node (all its gradients arrived) of the highest sequence number first, so that
//             gradients are summed in one order whatever the graph's shape, and results repeat bit for bit;
//             a leaf before all others, so that its hooks (DDP's) work while the pass goes on
// A node's slot is kept in the node while the pass runs. A pass inside a pass (a hook or a checkpoint that
// calls backward) may meet the same leaves, so each pass puts back what it found. Passes of several threads
// take turns.
class BackwardPass {
 public:
  BackwardPass(bool retain_graph, bool create_graph, bool accumulate)
      : lock_(mutex()),
        id_(++last_id()),
        retain_graph_(retain_graph),
        create_graph_(create_graph),
        accumulate_(accumulate) {
    ++depth();
  }
  ~BackwardPass() {
    if (--depth() == 0) callbacks().clear();
    for (auto task = tasks_.rbegin(); task != tasks_.rend(); ++task) {
      task->node->pass_ = task->outer_pass;
      task->node->slot_ = task->outer_slot;
    }
  }

  void add_root(const Edge& edge, Tensor grad) { roots_.emplace_back(edge, std::move(grad)); }
  // The gradient that arrives at `edge` will be left in captured(i); i counts the calls.
  void capture(const Edge& edge) { captures_.push_back({edge, {}}); }
  const Tensor& captured(size_t i) const { return captures_[i].grad; }

  void run() {
    tasks_.reserve(16);  // small graphs are walked without growing it
    for (auto& [edge, grad] : roots_) discover(edge.node);
    if (!accumulate_) prune();
    for (auto& [edge, grad] : roots_) deliver(edge, std::move(grad), false);
    for (auto& [edge, grad] : roots_) enqueue_if_ready(edge.node->slot_);
    while (!ready_.empty()) step(pop());
    if (depth() > 1) return;
    for (const auto& f : std::exchange(callbacks(), {})) f();
  }

  static void queue_callback(std::function<void()> f) {
    const std::lock_guard lock(mutex());
    GRADUS_CHECK(depth() > 0, "E-GRAD", "queue_callback: no backward pass is running",
                 hint("call it in a hook"));
    callbacks().push_back(std::move(f));
  }

 private:
  struct Task {
    Intrusive<Node> node;
    TensorList grads;
    uint64_t outer_pass;
    uint32_t outer_slot;
    int missing = 0;        // gradients still to come
    bool needed = true;     // its backward() runs
    bool captured = false;  // what arrives at it is asked for
    bool queued = false;
  };
  struct Capture {
    Edge edge;
    Tensor grad;
  };

  static std::recursive_mutex& mutex() {
    static std::recursive_mutex m;
    return m;
  }
  // How many passes run, one inside the other, and what to call after the outermost. Behind mutex().
  static int& depth() {
    static int n = 0;
    return n;
  }
  static std::vector<std::function<void()>>& callbacks() {
    static std::vector<std::function<void()>> all;
    return all;
  }
  static uint64_t& last_id() {
    static uint64_t id = 0;
    return id;
  }

  bool known(const Node* node) const { return node->pass_ == id_; }
  Task& task(const Intrusive<Node>& node) { return tasks_[node->slot_]; }

  void add(const Intrusive<Node>& node) {
    tasks_.push_back({node, TensorList(node->output_count_), node->pass_, node->slot_});
    node->pass_ = id_;
    node->slot_ = static_cast<uint32_t>(tasks_.size() - 1);
  }

  void discover(const Intrusive<Node>& root) {
    if (known(root.get())) return;
    const size_t first = tasks_.size();
    add(root);
    for (size_t i = first; i < tasks_.size(); ++i) {
      const Intrusive<Node> node = tasks_[i].node;
      for (const Edge& e : node->edges_) {
        if (!e.node) continue;
        if (!known(e.node.get())) add(e.node);
        ++task(e.node).missing;
      }
    }
  }

  // needed: leads to a captured node. (The captured one itself need not run.) Sequence numbers fall along
  // every edge within a thread, but graphs may cross threads, so this iterates until nothing changes; one
  // sweep is almost always enough.
  void prune() {
    for (Task& t : tasks_) t.needed = false;
    for (const Capture& c : captures_)
      if (c.edge.node && known(c.edge.node.get())) task(c.edge.node).captured = true;
    std::vector<uint32_t> order(tasks_.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(),
              [&](uint32_t a, uint32_t b) { return tasks_[a].node->sequence_ < tasks_[b].node->sequence_; });
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t i : order) {
        if (tasks_[i].needed) continue;
        for (const Edge& e : tasks_[i].node->edges_)
          if (e.node && (task(e.node).needed || task(e.node).captured)) tasks_[i].needed = changed = true;
      }
    }
  }

  void deliver(const Edge& edge, Tensor grad, bool counts) {
    Task& t = task(edge.node);
    if (grad.defined()) {
      Tensor& sum = t.grads[edge.input];
      sum = sum.defined() ? sum + grad : std::move(grad);
    }
    if (counts) --t.missing;
  }

  void enqueue_if_ready(uint32_t slot) {
    Task& t = tasks_[slot];
    if (t.missing > 0 || t.queued) return;
    t.queued = true;
    ready_.push_back({t.node->sequence_, slot});
    std::push_heap(ready_.begin(), ready_.end());
  }

  uint32_t pop() {
    std::pop_heap(ready_.begin(), ready_.end());
    const uint32_t slot = ready_.back().second;
    ready_.pop_back();
    return slot;
  }

  void step(uint32_t slot) {
    const Intrusive<Node> node = tasks_[slot].node;
    TensorList grads = std::move(tasks_[slot].grads);
    const bool any = std::any_of(grads.begin(), grads.end(), [](const Tensor& g) { return g.defined(); });
    if (any) node->run_hooks(grads);
    for (Capture& c : captures_)
      if (c.edge.node == node) c.grad = grads[c.edge.input];
    TensorList results;
    if (any && tasks_[slot].needed) results = apply(*node, grads);
    for (size_t i = 0; i < node->edges_.size(); ++i) {
      const Edge& e = node->edges_[i];
      if (!e.node) continue;
      deliver(e, i < results.size() ? std::move(results[i]) : Tensor(), true);
      enqueue_if_ready(e.node->slot_);
    }
  }

  TensorList apply(Node& node, const TensorList& grads) {
    if (!accumulate_ && dynamic_cast<AccumulateGrad*>(&node)) return {};  // grad() leaves every .grad alone
    GRADUS_CHECK(
        !create_graph_ || node.differentiable(), "E-DOUBLE-BACKWARD", node.name(),
        ": the second derivative is not implemented",
        hint("call backward() without create_graph, or write the operation with differentiable ones"));
    TensorList results = node.backward(grads);
    if (!retain_graph_) node.release_saved();
    return results;
  }

  std::lock_guard<std::recursive_mutex> lock_;
  uint64_t id_;
  bool retain_graph_, create_graph_, accumulate_;
  AutoGradMode grad_mode_{create_graph_};
  ops::AutocastOff autocast_off_;  // gradients have the dtypes that the forward pass chose
  std::vector<std::pair<Edge, Tensor>> roots_;
  std::vector<Capture> captures_;
  std::vector<Task> tasks_;
  std::vector<std::pair<uint64_t, uint32_t>> ready_;
};

TensorList AccumulateGrad::backward(const TensorList& grads) {
  const Tensor& g = grads[0];
  GRADUS_ASSERT(g.sizes() == sizes, "a gradient of shape ", g.sizes(), " arrived at a leaf of shape ", sizes);
  if (grad.defined()) {
    if (GradMode::is_enabled()) {
      grad = grad + g;
    } else {
      grad.add_(g);
    }
  } else if (GradMode::is_enabled()) {
    grad = g;
  } else if (g.impl()->use_count() == 1 && g.impl()->storage->use_count() == 1 &&
             gradus::detail::has_strides(sizes, g.strides(), strides)) {
    grad = g;  // nobody else sees it
  } else {
    grad = empty_strided(sizes, strides, g.dtype(), g.device());
    grad.copy_(g);
  }
  for (const auto& hook : post_hooks) hook(grad);
  return {};
}

namespace {

Tensor root_gradient(const Tensor& output, const Tensor& given) {
  GRADUS_CHECK(
      output.requires_grad(), "E-REQUIRES-GRAD",
      "backward: element 0 of tensors does not require grad and does not have a grad_fn; its shape is ",
      output.sizes(),
      hint("it must be made of a tensor that requires grad by differentiable operations, "
           "outside NoGradGuard"));
  if (!given.defined()) {
    GRADUS_CHECK(output.numel() == 1, "E-GRAD",
                 "backward: grad can be implicitly created only for scalar outputs, got shape ",
                 output.sizes(), hint("reduce it with sum() or mean(), or pass a gradient of its shape"));
    return ones_like(output);
  }
  GRADUS_CHECK(given.sizes() == output.sizes(), "E-GRAD", "backward: the output has shape ", output.sizes(),
               ", its gradient ", given.sizes(), hint("they must be equal"));
  GRADUS_CHECK(given.device() == output.device(), "E-DEVICE-MISMATCH", "backward: the output is on ",
               output.device(), ", its gradient on ", given.device(), hint("move it with .to(device)"));
  return given.to(output.dtype());
}

}  // namespace

namespace autograd {

void queue_callback(std::function<void()> f) { BackwardPass::queue_callback(std::move(f)); }

static void add_roots(BackwardPass& pass, const std::vector<Tensor>& outputs,
                      const std::vector<Tensor>& grads) {
  GRADUS_CHECK(grads.empty() || grads.size() == outputs.size(), "E-GRAD", "backward: ", outputs.size(),
               " outputs, but ", grads.size(), " gradients");
  for (size_t i = 0; i < outputs.size(); ++i) {
    Tensor g = root_gradient(outputs[i], grads.empty() ? Tensor() : grads[i]);
    pass.add_root(gradient_edge(outputs[i]), std::move(g));
  }
}

void backward(const std::vector<Tensor>& outputs, const std::vector<Tensor>& grad_outputs, bool retain_graph,
              bool create_graph) {
  BackwardPass pass(retain_graph || create_graph, create_graph, true);
  add_roots(pass, outputs, grad_outputs);
  pass.run();
}

std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& grad_outputs, bool retain_graph, bool create_graph,
                         bool allow_unused) {
  BackwardPass pass(retain_graph || create_graph, create_graph, false);
  add_roots(pass, outputs, grad_outputs);
  for (const Tensor& input : inputs) {
    GRADUS_CHECK(input.requires_grad(), "E-REQUIRES-GRAD", "grad: an input of shape ", input.sizes(),
                 " does not require grad", hint("call requires_grad_() on it before the forward pass"));
    pass.capture(gradient_edge(input));
  }
  pass.run();
  std::vector<Tensor> result;
  for (size_t i = 0; i < inputs.size(); ++i) {
    GRADUS_CHECK(pass.captured(i).defined() || allow_unused, "E-UNUSED", "grad: input ", i, " of shape ",
                 inputs[i].sizes(), " was not used to compute the outputs",
                 hint("pass allow_unused=true to get an undefined tensor for it"));
    result.push_back(pass.captured(i));
  }
  return result;
}

}  // namespace autograd

void Tensor::backward(const Tensor& gradient, bool retain_graph, bool create_graph) const {
  autograd::backward({*this}, {gradient}, retain_graph, create_graph);
}

}  // namespace gradus
