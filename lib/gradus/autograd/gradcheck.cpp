#include <gradus/autograd/backward.h>
#include <gradus/autograd/gradcheck.h>
#include <gradus/base/random.h>
#include <gradus/ops/factories.h>
#include <gradus/tensor/grad_mode.h>
#include <gradus/tensor/views.h>

#include <algorithm>
#include <cmath>

namespace gradus::autograd {
namespace {

using Values = std::vector<double>;

Tensor on_host(const Values& values, const Shape& sizes) {
  Tensor t = empty(sizes, kFloat64);
  std::copy(values.begin(), values.end(), t.data<double>());
  return t;
}

// Writes through a detached handle: it shares x's memory and has no history to protect.
void overwrite(const Tensor& x, const Values& values) {
  NoGradGuard no_grad;
  x.detach().copy_(on_host(values, x.sizes()));
}

std::vector<Values> evaluate(const GradcheckFunction& fn, const std::vector<Tensor>& inputs) {
  NoGradGuard no_grad;
  std::vector<Values> results;
  for (const Tensor& y : fn(inputs)) results.push_back(y.to_vector<double>());
  return results;
}

// columns[o][j][i] = d output_o[i] / d x[j]
std::vector<std::vector<Values>> numerical(const GradcheckFunction& fn, const std::vector<Tensor>& inputs,
                                           const Tensor& x, size_t outputs, double eps) {
  std::vector<std::vector<Values>> columns(outputs);
  const Values original = x.to_vector<double>();
  Values moved = original;
  for (size_t j = 0; j < original.size(); ++j) {
    moved[j] = original[j] + eps;
    overwrite(x, moved);
    std::vector<Values> up = evaluate(fn, inputs);
    moved[j] = original[j] - eps;
    overwrite(x, moved);
    const std::vector<Values> down = evaluate(fn, inputs);
    moved[j] = original[j];
    for (size_t o = 0; o < outputs; ++o) {
      for (size_t i = 0; i < up[o].size(); ++i) up[o][i] = (up[o][i] - down[o][i]) / (2 * eps);
      columns[o].push_back(std::move(up[o]));
    }
  }
  overwrite(x, original);
  return columns;
}

// rows[i][k][j] = d y[i] / d wanted[k][j]
std::vector<std::vector<Values>> analytical(const Tensor& y, const std::vector<Tensor>& wanted) {
  std::vector<std::vector<Values>> rows;
  for (int64_t i = 0; i < y.numel(); ++i) {
    std::vector<Values> row;
    for (const Tensor& x : wanted) row.emplace_back(x.numel(), 0.0);
    if (y.requires_grad()) {
      Values one(static_cast<size_t>(y.numel()), 0.0);
      one[static_cast<size_t>(i)] = 1;
      const std::vector<Tensor> grads =
          grad({y}, wanted, {on_host(one, y.sizes()).to(y.device())}, true, false, true);
      for (size_t k = 0; k < wanted.size(); ++k)
        if (grads[k].defined()) row[k] = grads[k].to_vector<double>();
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<Tensor> differentiable(const std::vector<Tensor>& inputs, const char* op) {
  std::vector<Tensor> wanted;
  for (const Tensor& x : inputs) {
    if (!x.requires_grad()) continue;
    GRADUS_CHECK(x.dtype() == kFloat64, "E-DTYPE", op, ": finite differences need float64, input ",
                 wanted.size(), " is ", to_string(x.dtype()), hint("convert it with .to(kFloat64)"));
    wanted.push_back(x);
  }
  GRADUS_CHECK(!wanted.empty(), "E-REQUIRES-GRAD", op, ": no input requires grad",
               hint("call requires_grad_() on those to check"));
  return wanted;
}

// Fixed numbers in (-1, 1): a gradient_output of ones would hide a wrong factor that sums to nothing.
Tensor grad_output(const Tensor& y, uint64_t number) {
  const PhiloxStream random{0x9d5, number};
  Values values(static_cast<size_t>(y.numel()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = 2 * random.uniform<double>(i) - 1;
  return on_host(values, y.sizes()).to(y.device()).requires_grad_();
}

GradcheckFunction as_list(const SingleGradcheckFunction& fn) {
  return [fn](const std::vector<Tensor>& inputs) { return std::vector<Tensor>{fn(inputs)}; };
}

}  // namespace

bool gradcheck(const GradcheckFunction& fn, const std::vector<Tensor>& inputs, double eps, double atol,
               double rtol) {
  const std::vector<Tensor> wanted = differentiable(inputs, "gradcheck");
  std::vector<std::vector<std::vector<Values>>> numbers;
  const size_t outputs = evaluate(fn, inputs).size();
  for (const Tensor& x : wanted) numbers.push_back(numerical(fn, inputs, x, outputs, eps));

  const std::vector<Tensor> y = fn(inputs);
  for (size_t o = 0; o < outputs; ++o) {
    const auto rows = analytical(y[o], wanted);
    for (size_t i = 0; i < rows.size(); ++i) {
      for (size_t k = 0; k < wanted.size(); ++k) {
        for (size_t j = 0; j < rows[i][k].size(); ++j) {
          const double a = rows[i][k][j], n = numbers[k][o][j][i];
          GRADUS_CHECK(std::fabs(a - n) <= atol + rtol * std::fabs(n), "E-GRADCHECK",
                       "gradcheck: Jacobian mismatch for output ", o, " with respect to input ", k, ": d y[",
                       i, "] / d x[", j, "] is numerically ", n, ", analytically ", a,
                       hint("elements are counted in row-major order, inputs among those that require grad"));
        }
      }
    }
  }
  return true;
}

bool gradgradcheck(const GradcheckFunction& fn, const std::vector<Tensor>& inputs, double eps, double atol,
                   double rtol) {
  const std::vector<Tensor> wanted = differentiable(inputs, "gradgradcheck");
  std::vector<Tensor> all = inputs;
  for (const Tensor& y : fn(inputs))
    if (y.requires_grad()) all.push_back(grad_output(y, all.size()));

  auto gradient = [&](const std::vector<Tensor>& args) {
    EnableGradGuard recording;  // the finite differences call this with recording off
    std::vector<Tensor> x(args.begin(), args.begin() + static_cast<std::ptrdiff_t>(inputs.size()));
    std::vector<Tensor> grad_outputs(args.begin() + static_cast<std::ptrdiff_t>(inputs.size()), args.end());
    std::vector<Tensor> outputs;
    for (Tensor& y : fn(x))
      if (y.requires_grad()) outputs.push_back(y);
    std::vector<Tensor> grads = grad(outputs, wanted, grad_outputs, true, true, true);
    for (size_t k = 0; k < grads.size(); ++k)
      if (!grads[k].defined()) grads[k] = zeros_like(wanted[k]);
    return grads;
  };
  return gradcheck(gradient, all, eps, atol, rtol);
}

bool gradcheck(const SingleGradcheckFunction& fn, const std::vector<Tensor>& inputs, double eps, double atol,
               double rtol) {
  return gradcheck(as_list(fn), inputs, eps, atol, rtol);
}
bool gradgradcheck(const SingleGradcheckFunction& fn, const std::vector<Tensor>& inputs, double eps,
                   double atol, double rtol) {
  return gradgradcheck(as_list(fn), inputs, eps, atol, rtol);
}

}  // namespace gradus::autograd
