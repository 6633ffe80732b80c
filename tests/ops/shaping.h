// References of operations that move elements: each says where an element of the result comes from.
#pragma once
#include "op_case.h"

namespace gradus::optest {

/// The array of shape `sizes` whose element at `index` is f(index).
template <class F>
RefArray build(const Shape& sizes, const F& f) {
  RefArray y(sizes);
  Shape index = Shape::filled(sizes.size(), 0);
  for (int64_t i = 0; i < y.numel(); ++i) {
    int64_t rest = i;
    for (int d = sizes.size() - 1; d >= 0; --d) {
      index[d] = rest % sizes[d];
      rest /= sizes[d];
    }
    y[i] = f(index);
  }
  return y;
}

/// `index` with entry d replaced.
inline Shape with(Shape index, int d, int64_t value) {
  index[d] = value;
  return index;
}

/// The same values in another shape.
inline RefArray reshaped(RefArray x, const Shape& sizes) {
  x.sizes = sizes;
  return x;
}

/// Shapes of single-input cases.
inline std::vector<std::vector<Shape>> one_input(std::initializer_list<Shape> shapes) {
  std::vector<std::vector<Shape>> list;
  for (const Shape& s : shapes) list.push_back({s});
  return list;
}

}  // namespace gradus::optest
