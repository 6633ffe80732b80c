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
               impl_->grad_fn->name(), hint("use detach()"));
  GRADUS_CHECK(!on || !impl_->inference, "E-INFERENCE",
               "requires_grad_: the tensor was made in inference mode",
               hint("clone() it outside InferenceMode"));
  if (!is_leaf()) return *this;
  impl_->requires_grad = on;
  if (on && !impl_->leaf) impl_->leaf = Intrusive<Node>(new AccumulateGrad(*this));
  return *this;
}

const Tensor& Tensor::grad() const {
  static const Tensor none;
  if (impl_->leaf) return static_cast<const AccumulateGrad&>(*impl_->leaf).grad;
  return impl_->retained ? *impl_->retained : none;
}

void Tensor::set_grad(Tensor grad) {
  if (grad.defined()) {
    GRADUS_CHECK(grad.sizes() == sizes() && grad.dtype() == dtype() && grad.device() == device(), "E-GRAD",
                 "set_grad: expected a gradient of shape ", sizes(), ", ", to_string(dtype()), " on ",
                 device(), ", got ", grad.sizes(), ", ", to_string(grad.dtype()), " on ", grad.device());
  }
  if (!impl_->leaf && !grad.defined()) return;
  leaf_of(*this, "set_grad").grad = std::move(grad);
}

void Tensor::set_data(const Tensor& other) {
  GRADUS_CHECK(is_leaf() && other.sizes() == sizes(), "E-SHAPE", "set_data: expected ",
               is_leaf() ? "" : "a leaf and ", "data of shape ", sizes(), ", got ", other.sizes());
  impl_->storage = other.impl_->storage;
  impl_->strides = other.strides();
  impl_->offset = other.storage_offset();
  impl_->dtype = other.dtype();
  impl_->contiguous = other.impl_->contiguous;
  if (impl_->leaf) static_cast<AccumulateGrad&>(*impl_->leaf).strides = other.strides();
}

void Tensor::retain_grad() {
  GRADUS_CHECK(requires_grad(), "E-REQUIRES-GRAD", "retain_grad: the tensor does not require grad",
               hint("call requires_grad_() on the leaves it is made of"));
  if (is_leaf() || impl_->retained) return;
  impl_->retained = std::make_shared<Tensor>();
  impl_->grad_fn->add_hook(impl_->output_nr, [slot = impl_->retained](const Tensor& grad) {
    *slot = slot->defined() ? *slot + grad : grad;
    return Tensor();
  });
}

void Tensor::register_hook(std::function<Tensor(const Tensor&)> hook) {
  if (is_leaf()) {
    leaf_of(*this, "register_hook").add_hook(0, std::move(hook));
  } else {
    impl_->grad_fn->add_hook(impl_->output_nr, std::move(hook));
  }
}

void Tensor::register_post_accumulate_grad_hook(std::function<void(const Tensor&)> hook) {
  leaf_of(*this, "register_post_accumulate_grad_hook").post_hooks.push_back(std::move(hook));
}

}  // namespace gradus
