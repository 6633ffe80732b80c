// The Tensor methods that read and set its autograd state.
#include <gradus/tensor/node.h>

namespace gradus {
namespace {

AccumulateGrad& leaf_of(const Tensor& tensor, const char* op) {
  GRADUS_CHECK(tensor.is_leaf() && tensor.requires_grad(), "E-REQUIRES-GRAD", op,
               ": expected a leaf that requires grad, got ",
               tensor.is_leaf() ? "one that does not require grad" : "the result of an operation",
               hint("call requires_grad_() on a leaf, or retain_grad() and register_hook() on a result"));
  return static_cast<AccumulateGrad&>(*tensor.impl()->leaf);
}

}  // namespace

Tensor& Tensor::requires_grad_(bool on) {
  GRADUS_CHECK(!on || is_floating_point(), "E-REQUIRES-GRAD",
               "requires_grad_: only Tensors of floating point dtype can require gradients, this one is ",
               to_string(dtype()), hint("convert it with .to(kFloat32) first"));
  GRADUS_CHECK(is_leaf() || on, "E-REQUIRES-GRAD",
               "requires_grad_: only a leaf can stop requiring grad; this is the result of ",
               self().grad_fn->name(), hint("use detach()"));
  GRADUS_CHECK(!on || !self().inference, "E-INFERENCE",
               "requires_grad_: the tensor was made in inference mode",
               hint("clone() it outside InferenceMode"));
  if (!is_leaf()) return *this;
  self().requires_grad = on;
  if (on && !self().leaf) self().leaf = Intrusive<Node>(new AccumulateGrad(*this));
  return *this;
}

Tensor& Tensor::detach_() {
  GRADUS_CHECK(!self().base, "E-INPLACE", "detach_: can't detach views in-place", hint("use detach()"));
  self().requires_grad = false;
  self().grad_fn = {};
  self().output_nr = 0;
  self().leaf = {};
  self().retained = {};
  return *this;
}

const Tensor& Tensor::grad() const {
  static const Tensor none;
  if (self().leaf) return static_cast<const AccumulateGrad&>(*self().leaf).grad;
  return self().retained ? *self().retained : none;
}

void Tensor::set_grad(Tensor grad) {
  if (grad.defined()) {
    GRADUS_CHECK(grad.sizes() == sizes() && grad.dtype() == dtype() && grad.device() == device(), "E-GRAD",
                 "set_grad: expected a gradient of shape ", sizes(), ", ", to_string(dtype()), " on ",
                 device(), ", got ", grad.sizes(), ", ", to_string(grad.dtype()), " on ", grad.device());
  }
  if (!self().leaf && !grad.defined()) return;
  leaf_of(*this, "set_grad").grad = std::move(grad);
}

void Tensor::set_data(const Tensor& other) {
  GRADUS_CHECK(is_leaf() && other.sizes() == sizes(), "E-SHAPE", "set_data: expected ",
               is_leaf() ? "" : "a leaf and ", "data of shape ", sizes(), ", got ", other.sizes());
  self().storage = other.self().storage;
  self().strides = other.strides();
  self().offset = other.storage_offset();
  self().dtype = other.dtype();
  self().contiguous = other.self().contiguous;
  if (self().leaf) static_cast<AccumulateGrad&>(*self().leaf).strides = other.strides();
}

void Tensor::retain_grad() {
  GRADUS_CHECK(requires_grad(), "E-REQUIRES-GRAD", "retain_grad: the tensor does not require grad",
               hint("call requires_grad_() on the leaves it is made of"));
  if (is_leaf() || self().retained) return;
  self().retained = std::make_shared<Tensor>();
  self().grad_fn->add_hook(self().output_nr, [slot = self().retained](const Tensor& grad) {
    *slot = slot->defined() ? *slot + grad : grad;
    return Tensor();
  });
}

void Tensor::register_hook(std::function<Tensor(const Tensor&)> hook) {
  if (is_leaf()) {
    leaf_of(*this, "register_hook").add_hook(0, std::move(hook));
  } else {
    self().grad_fn->add_hook(self().output_nr, std::move(hook));
  }
}

void Tensor::register_post_accumulate_grad_hook(std::function<void(const Tensor&)> hook) {
  leaf_of(*this, "register_post_accumulate_grad_hook").post_hooks.push_back(std::move(hook));
}

}  // namespace gradus
