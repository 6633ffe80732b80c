// What most ops need to check and to allocate.
#pragma once
#include <gradus/base/log.h>
#include <gradus/runtime/launch.h>
#include <gradus/tensor/node.h>
#include <gradus/tensor/views.h>

#include <initializer_list>

namespace gradus::ops {

/// A tensor argument and its name, for error texts.
struct NamedTensor {
  const char* name;
  const Tensor& tensor;
  bool optional = false;  ///< may be undefined
};

[[noreturn]] void refuse_undefined(const char* op, const char* name);

/// Throws E-UNDEFINED where the operand is missing. To be called before the operand is looked at: the
/// tensor's own error cannot name the operation.
inline void check_defined(const char* op, const Tensor& x, const char* name = "input") {
  if (!x.defined()) [[unlikely]]
    refuse_undefined(op, name);
}

[[noreturn]] void refuse_devices(const char* op, std::initializer_list<NamedTensor> tensors);

/// Throws E-UNDEFINED where an operand is missing, and E-DEVICE-MISMATCH, naming every operand and its
/// device, unless all are on one device.
inline void check_same_device(const char* op, std::initializer_list<NamedTensor> tensors) {
  const Tensor* first = nullptr;
  for (const NamedTensor& t : tensors) {
    if (!t.tensor.defined()) {
      if (!t.optional) [[unlikely]]
        refuse_undefined(op, t.name);
      continue;
    }
    if (!first) first = &t.tensor;
    if (t.tensor.device() != first->device()) [[unlikely]]
      refuse_devices(op, tensors);
  }
}

/// The dtype of an operation on two tensors, by PyTorch's rule: a 0-dim tensor does not widen a dimensioned
/// one of the same category. Throws E-UNDEFINED.
DType result_type(const char* op, const Tensor& a, const Tensor& b);
/// The same of a tensor and a number, which widens the tensor's dtype only to another category.
DType result_type(const char* op, const Tensor& a, Scalar b);

/// An output of the broadcast shape, laid out like the operand that has that shape.
Tensor binary_output(const Tensor& a, const Tensor& b, DType dtype, const char* op);

/// Makes `self` the tensor `result` in place: takes its values and its history. What an in-place operation
/// does where a gradient is wanted; `others` are the operation's other tensor inputs.
Tensor& assign(Tensor& self, const Tensor& result, const char* op, std::span<const Tensor> others = {});

/// `t`, or a copy of it if writing `self` element by element would change elements of `t` before they are
/// read (x.add_(x.t())).
Tensor separate_from(const Tensor& t, const Tensor& self);

/// A kernel's view of an operand that may be undefined.
inline TensorArg optional_arg(const Tensor& t) { return t.defined() ? t.arg() : TensorArg{}; }

inline Stream stream_of(const Tensor& t) { return current_stream(t.device()); }

/// wrap_dim() in x's dimensions. Throws E-UNDEFINED and E-DIM.
inline int wrap_dim(int64_t dim, const Tensor& x, const char* op) {
  check_defined(op, x);
  return gradus::wrap_dim(dim, x.dim(), op);
}

}  // namespace gradus::ops
