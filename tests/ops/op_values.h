// How the OpCase harness lays tensors out in memory, and draws their values.
#pragma once
#include "op_case.h"

namespace gradus::optest {

// How a tensor lies in memory. `view`: it is a part of a larger one, whose other elements are poison.
struct Layout {
  const char* name;
  Shape strides;
  int64_t offset = 0;
  bool view = false;
};
using MakeLayout = Layout (*)(const Shape&);

Layout contiguous_layout(const Shape& sizes);
Layout transposed_layout(const Shape& sizes);
/// Every second element of each dimension of a tensor twice as large, starting at its fourth element.
Layout sliced_layout(const Shape& sizes);
Layout channels_last_layout(const Shape& sizes);
/// One value everywhere, as the gradient of sum() has it.
Layout expanded_layout(const Shape& sizes);

Tensor make_tensor(const RefArray& values, DType dtype, const Layout& layout, Device device);

/// The same values for the same case, number of input and sizes.
RefArray draw(const Draw& how, const Shape& sizes, const std::string& name, size_t number);

}  // namespace gradus::optest
