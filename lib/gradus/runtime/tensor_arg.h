// A kernel's view of a tensor. Args structs hold these, and list them once, so that launch() knows every
// operand.
#pragma once
#include <gradus/base/dtype.h>
#include <gradus/base/shape.h>

#include <cstdint>

namespace gradus {

/// Address, sizes, strides (in elements), dtype and the id of the storage it lies in. storage_id 0: absent.
struct TensorArg {
  void* address = nullptr;
  uint64_t storage_id = 0;
  Shape sizes, strides;
  DType dtype = DType::float32;

  template <class T>
  GRADUS_HD T* data() const {
    return static_cast<T*>(address);
  }
  bool present() const { return storage_id != 0; }
  int dim() const { return sizes.size(); }
  int64_t numel() const { return sizes.numel(); }
  /// Bytes from the first element to the end of the last, gaps included; strides are not negative.
  size_t extent() const {
    if (numel() == 0) return 0;
    int64_t last = 0;
    for (int d = 0; d < dim(); ++d) last += (sizes[d] - 1) * strides[d];
    return static_cast<size_t>(last + 1) * element_size(dtype);
  }
};

/// The operands of a multi-tensor kernel: at most kCapacity of them, a launch each time it is full.
struct TensorListArg {
  static constexpr int kCapacity = 24;
  TensorArg items[kCapacity];
  int count = 0;

  void push_back(const TensorArg& arg) { items[count++] = arg; }
  const TensorArg& operator[](int i) const { return items[i]; }
};

namespace runtime {
/// The most operands a launch can list: five full tensor lists and a few single ones.
inline constexpr int kMaxOperands = 5 * TensorListArg::kCapacity + 8;
}  // namespace runtime

/// How a kernel uses an operand.
enum class Access : uint8_t { read, write, read_write };

/// One entry of an Args struct's operand list.
template <class Args, class Field>
struct Operand {
  Field Args::*field;
  Access access;
};
template <class Args, class Field>
constexpr Operand<Args, Field> in(Field Args::*field) {
  return {field, Access::read};
}
template <class Args, class Field>
constexpr Operand<Args, Field> out(Field Args::*field) {
  return {field, Access::write};
}
template <class Args, class Field>
constexpr Operand<Args, Field> inout(Field Args::*field) {
  return {field, Access::read_write};
}

}  // namespace gradus
