// Sizes and strides: a small array of int64 that lives where it is declared.
#pragma once
#include <gradus/base/error.h>
#include <gradus/base/macros.h>

#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>

namespace gradus {

/// The most dimensions a tensor may have. Kernels take shapes by value, so the array has a fixed size.
inline constexpr int kMaxDims = 8;

/// Up to kMaxDims int64 values; used for sizes, strides and lists of dimensions.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> values) : Shape(std::span(values.begin(), values.size())) {}
  explicit Shape(std::span<const int64_t> values) {
    for (int64_t v : values) push_back(v);
  }
  static Shape filled(int n, int64_t value) {
    Shape s;
    for (int i = 0; i < n; ++i) s.push_back(value);
    return s;
  }

  GRADUS_HD int size() const { return n_; }
  bool empty() const { return n_ == 0; }
  GRADUS_HD int64_t operator[](int i) const { return v_[i]; }
  GRADUS_HD int64_t& operator[](int i) { return v_[i]; }
  GRADUS_HD const int64_t* begin() const { return v_; }
  GRADUS_HD const int64_t* end() const { return v_ + n_; }
  int64_t* begin() { return v_; }
  int64_t* end() { return v_ + n_; }
  int64_t back() const { return v_[n_ - 1]; }
  operator std::span<const int64_t>() const { return {v_, static_cast<size_t>(n_)}; }

  void push_back(int64_t value) {
    GRADUS_CHECK(n_ < kMaxDims, "E-SHAPE", "tensor: more than ", kMaxDims, " dimensions",
                 hint("flatten some dimensions first"));
    v_[n_++] = value;
  }
  void insert(int at, int64_t value) {
    push_back(0);
    for (int i = n_ - 1; i > at; --i) v_[i] = v_[i - 1];
    v_[at] = value;
  }
  void erase(int at) {
    for (int i = at; i + 1 < n_; ++i) v_[i] = v_[i + 1];
    --n_;
  }

  /// The product of the sizes; 1 for no dimensions. Sizes of live tensors were checked against overflow.
  GRADUS_HD int64_t numel() const {
    int64_t product = 1;
    for (int i = 0; i < n_; ++i) product *= v_[i];
    return product;
  }

  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.n_ != b.n_) return false;
    for (int i = 0; i < a.n_; ++i)
      if (a.v_[i] != b.v_[i]) return false;
    return true;
  }

 private:
  int64_t
      v_[kMaxDims];  // only the first n_ are set: a shape is made for every tensor, and 64 bytes cost time
  int n_ = 0;
};

/// "[2, 3]", as PyTorch writes it.
std::string to_string(const Shape& shape);
std::ostream& operator<<(std::ostream& out, const Shape& shape);

/// Row-major strides of `sizes`, in elements.
Shape contiguous_strides(const Shape& sizes);
/// Strides of a 4-D (N, C, H, W) tensor whose memory order is N, H, W, C. Any other rank: row-major.
Shape channels_last_strides(const Shape& sizes);

/// The shape that `a` and `b` broadcast to by NumPy's rule. Throws E-SHAPE naming `op` and both shapes.
Shape broadcast_shapes(const Shape& a, const Shape& b, const char* op);

/// Turns a dimension counted from the end into one counted from the start.
/// Throws E-DIM naming `op` unless -ndim <= dim < ndim (a 0-dim tensor takes 0 and -1).
int wrap_dim(int64_t dim, int ndim, const char* op);

/// `numel() * element_size` with every product checked; throws E-SHAPE for a negative size or an overflow.
int64_t checked_bytes(const Shape& sizes, size_t element_size, const char* op);

}  // namespace gradus
