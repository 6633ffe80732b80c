// NumPy's file format for one array: how tensors reach Python.
#pragma once
#include <gradus/tensor/tensor.h>

#include <string>

namespace gradus {

/// Reads a .npy file (versions 1.0 to 3.0, little-endian; u1, i4, i8, b1, f2, f4, f8) onto the cpu, row-major
/// whatever order the file has. Throws E-FORMAT for what is no such file, naming what is wrong; E-TRUNCATED
/// with the bytes needed and found, before the tensor is allocated; E-FORMAT if bytes follow the array.
Tensor load_npy(const std::string& path);

/// Writes a tensor as numpy.save() would (version 1.0, C order), whole or not at all.
/// As with Tensor.numpy() in PyTorch, the tensor must be on the host (else E-DEVICE) and must not require a
/// gradient (else E-REQUIRES-GRAD). NumPy has no bfloat16: E-DTYPE.
void save_npy(const std::string& path, const Tensor& tensor);

}  // namespace gradus
