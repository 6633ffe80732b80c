// What stands between the brackets of x[…]: libtorch's names.
#pragma once
#include <gradus/tensor/tensor.h>

#include <limits>
#include <string_view>

namespace gradus {

/// A new dimension of size 1; as a Slice's bound, the end of the dimension.
struct NoneType {};
inline constexpr NoneType None;
/// As many whole dimensions as are left; also written "...".
struct EllipsisType {};
inline constexpr EllipsisType Ellipsis;

/// start:stop:step, as in Python: Slice(1, 5), Slice(None, -1), Slice(2).
class Slice {
 public:
  struct Bound {
    Bound(NoneType) {}
    template <std::integral T>
    Bound(T i) : value(static_cast<int64_t>(i)) {}
    std::optional<int64_t> value;
  };
  Slice(Bound from = None, Bound to = None, int64_t by = 1)
      : start(from.value.value_or(0)),
        stop(to.value.value_or(std::numeric_limits<int64_t>::max())),
        step(by) {}
  bool is_whole() const { return start == 0 && stop == std::numeric_limits<int64_t>::max() && step == 1; }

  int64_t start, stop, step;
};

/// One of: None, Ellipsis or "...", a number, a Slice, a tensor of int64 indices or of bools.
class TensorIndex {
 public:
  enum class Kind : uint8_t { none, ellipsis, number, slice, tensor };

  TensorIndex(NoneType) : kind_(Kind::none) {}
  TensorIndex(EllipsisType) : kind_(Kind::ellipsis) {}
  /// Throws E-ARG for any other text than "...".
  TensorIndex(const char* text) : kind_(Kind::ellipsis) {
    GRADUS_CHECK(std::string_view(text) == "...", "E-ARG", "index: expected \"...\", got \"", text, "\"");
  }
  template <std::integral T>
  TensorIndex(T i) : kind_(Kind::number), number_(static_cast<int64_t>(i)) {
    static_assert(!std::same_as<T, bool>, "index with a bool tensor, or unsqueeze()");
  }
  TensorIndex(Slice slice) : kind_(Kind::slice), slice_(slice) {}
  TensorIndex(Tensor tensor) : kind_(Kind::tensor), tensor_(std::move(tensor)) {}

  Kind kind() const { return kind_; }
  int64_t number() const { return number_; }
  const Slice& slice() const { return slice_; }
  const Tensor& tensor() const { return tensor_; }

 private:
  Kind kind_;
  int64_t number_ = 0;
  Slice slice_;
  Tensor tensor_;
};

}  // namespace gradus
