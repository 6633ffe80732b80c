// The backward pass, and gradients as values.
#pragma once
#include <gradus/tensor/tensor.h>

#include <functional>
#include <vector>

namespace gradus::autograd {

/// Adds d(sum_i <outputs[i], grad_outputs[i]>)/d(leaf) to .grad of every leaf that requires grad.
/// An undefined grad_output stands for 1 and needs a one-element output. Throws E-REQUIRES-GRAD for an output
/// without history, E-GRAPH-FREED on a second pass without retain_graph, E-DOUBLE-BACKWARD where create_graph
/// meets an operation without second derivative.
void backward(const std::vector<Tensor>& outputs, const std::vector<Tensor>& grad_outputs = {},
              bool retain_graph = false, bool create_graph = false);

/// The gradients of `inputs`, leaving every .grad alone, as torch.autograd.grad. An input that the outputs do
/// not depend on throws E-UNUSED unless allow_unused, which gives an undefined tensor for it.
std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& grad_outputs = {}, bool retain_graph = false,
                         bool create_graph = false, bool allow_unused = false);

/// Calls `f` on this thread when the pass that runs now has ended, or, if that is inside another, the
/// outermost one. What it throws reaches the caller of backward(). Forgotten where the pass throws. For
/// hooks; throws E-GRAD outside of a pass.
void queue_callback(std::function<void()> f);

}  // namespace gradus::autograd
