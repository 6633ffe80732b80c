#include <gradus/ops/common.h>

namespace gradus::ops {
namespace {

// bool, integers, floating point
int category(DType d) { return is_floating_point(d) ? 2 : d == DType::boolean ? 0 : 1; }

}  // namespace

void refuse_undefined(const char* op, const char* name) {
  GRADUS_FAIL(
      "E-UNDEFINED", op, ": expected ", name, " to be a tensor, got an undefined one",
      hint("a Tensor{} holds nothing, nor does one that was moved from, nor .grad() before backward(); "
           "defined() tells"));
}

void refuse_devices(const char* op, std::initializer_list<NamedTensor> tensors) {
  std::string list;
  Device first, other;
  bool seen = false;
  for (const NamedTensor& t : tensors) {
    if (!t.tensor.defined()) continue;
    list += str(list.empty() ? "" : ", ", t.name, " is on ", t.tensor.device());
    if (!seen) first = t.tensor.device();
    if (seen && t.tensor.device() != first) other = t.tensor.device();
    seen = true;
  }
  GRADUS_FAIL("E-DEVICE-MISMATCH", op,
              ": Expected all tensors to be on the same device, but found at least two devices, ", first,
              " and ", other, "! ", list, hint("move them to one device with .to(device)"));
}

DType result_type(const char* op, const Tensor& a, const Tensor& b) {
  check_defined(op, a, "a");
  check_defined(op, b, "b");
  if (a.dtype() == b.dtype()) return a.dtype();
  const bool a_wins = a.dim() > 0 && b.dim() == 0 && category(a.dtype()) >= category(b.dtype());
  const bool b_wins = b.dim() > 0 && a.dim() == 0 && category(b.dtype()) >= category(a.dtype());
  if (a_wins) return a.dtype();
  if (b_wins) return b.dtype();
  return promote_types(a.dtype(), b.dtype());
}

DType result_type(const char* op, const Tensor& a, Scalar b) {
  check_defined(op, a, "a");
  return promote_with_scalar(a.dtype(), b.kind());
}

Tensor binary_output(const Tensor& a, const Tensor& b, DType dtype, const char* op) {
  if (a.sizes() == b.sizes()) return empty_like(a.is_dense() ? a : b, dtype);
  const Shape sizes = broadcast_shapes(a.sizes(), b.sizes(), op);
  if (a.sizes() == sizes) return empty_like(a, dtype);
  if (b.sizes() == sizes) return empty_like(b, dtype);
  return empty(sizes, dtype, a.device());
}

Tensor& assign(Tensor& self, const Tensor& result, const char* op, std::span<const Tensor> others) {
  check_inplace(self, op, others);
  GRADUS_CHECK(result.sizes() == self.sizes(), "E-SHAPE", op, "_: output with shape ", self.sizes(),
               " doesn't match the broadcast shape ", result.sizes(), hint("use the out-of-place operation"));
  if (result.grad_fn()) Recorder::keep_before_overwrite(*result.grad_fn(), self);
  const Tensor converted = result.to(self.dtype());
  {
    NoGradGuard no_grad;
    self.copy_(converted);
  }
  self.impl()->grad_fn = converted.impl()->grad_fn;
  self.impl()->output_nr = converted.impl()->output_nr;
  return self;
}

Tensor separate_from(const Tensor& t, const Tensor& self) {
  const bool same_elements =
      t.raw_data() == self.raw_data() && t.sizes() == self.sizes() && t.strides() == self.strides();
  if (!t.is_alias_of(self) || same_elements) return t;
  return t.clone();
}

}  // namespace gradus::ops
