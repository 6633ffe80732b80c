// a + b, a - b, a * b, a / b with broadcasting and PyTorch's type promotion. a.dtype() and b.dtype() may
// differ; the result's is result_type(a, b), and for div of integers or bools float32. Of bools, add is "or"
// and mul "and"; sub refuses them (E-DTYPE). Shapes broadcast by
// NumPy's rule (else E-SHAPE); both operands are on one device (else E-DEVICE-MISMATCH).
#pragma once
#include <gradus/tensor/tensor.h>

namespace gradus {

Tensor add(const Tensor& a, const Tensor& b);
Tensor add(const Tensor& a, Scalar b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, Scalar b);
/// b - a
Tensor rsub(const Tensor& a, Scalar b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, Scalar b);
/// True division: integers give float32; x / 0 is inf or NaN.
Tensor div(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, Scalar b);

}  // namespace gradus
