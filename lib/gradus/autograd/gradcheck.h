// Gradients against finite differences.
#pragma once
#include <gradus/tensor/tensor.h>

#include <functional>
#include <vector>

namespace gradus::autograd {

/// A function to check: tensors to tensors, the same result at every call.
using GradcheckFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
using SingleGradcheckFunction = std::function<Tensor(const std::vector<Tensor>&)>;

/// Compares the Jacobian that backward() gives with central differences (f(x + eps) - f(x - eps)) / (2 eps),
/// for every element of every output and of every input that requires grad, as torch.autograd.gradcheck.
/// Those inputs are float64 (else E-DTYPE); they are changed in place during the check and restored. Returns
/// true, or throws E-GRADCHECK with output, input, element and both numbers where
/// |analytical - numerical| <= atol + rtol * |numerical| does not hold.
bool gradcheck(const GradcheckFunction& fn, const std::vector<Tensor>& inputs, double eps = 1e-6,
               double atol = 1e-5, double rtol = 1e-3);
bool gradcheck(const SingleGradcheckFunction& fn, const std::vector<Tensor>& inputs, double eps = 1e-6,
               double atol = 1e-5, double rtol = 1e-3);

/// The same for second derivatives, as torch.autograd.gradgradcheck: checks the gradient of
/// (inputs, grad_outputs) -> grad(fn(inputs), inputs, grad_outputs, create_graph = true) at fixed
/// grad_outputs between -1 and 1. Throws E-DOUBLE-BACKWARD where an operation has no second derivative.
bool gradgradcheck(const GradcheckFunction& fn, const std::vector<Tensor>& inputs, double eps = 1e-6,
                   double atol = 1e-5, double rtol = 1e-3);
bool gradgradcheck(const SingleGradcheckFunction& fn, const std::vector<Tensor>& inputs, double eps = 1e-6,
                   double atol = 1e-5, double rtol = 1e-3);

}  // namespace gradus::autograd
