// Element types, their properties, promotion, and the visitors that turn a DType into a C++ type.
#pragma once
#include <gradus/base/error.h>
#include <gradus/base/half.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <type_traits>

namespace gradus {

enum class DType : uint8_t { uint8, int32, int64, boolean, float16, bfloat16, float32, float64 };
inline constexpr int kDTypeCount = 8;

// PyTorch's names: gradus::kFloat32 is torch::kFloat32.
inline constexpr DType kUInt8 = DType::uint8, kInt32 = DType::int32, kInt64 = DType::int64,
                       kBool = DType::boolean, kFloat16 = DType::float16, kBFloat16 = DType::bfloat16,
                       kFloat32 = DType::float32, kFloat64 = DType::float64;

template <DType D>
struct ElementType;
template <>
struct ElementType<DType::uint8> {
  using type = uint8_t;
};
template <>
struct ElementType<DType::int32> {
  using type = int32_t;
};
template <>
struct ElementType<DType::int64> {
  using type = int64_t;
};
template <>
struct ElementType<DType::boolean> {
  using type = bool;
};
template <>
struct ElementType<DType::float16> {
  using type = Half;
};
template <>
struct ElementType<DType::bfloat16> {
  using type = BFloat16;
};
template <>
struct ElementType<DType::float32> {
  using type = float;
};
template <>
struct ElementType<DType::float64> {
  using type = double;
};

template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, uint8_t>)
    return DType::uint8;
  else if constexpr (std::is_same_v<T, int32_t>)
    return DType::int32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return DType::int64;
  else if constexpr (std::is_same_v<T, bool>)
    return DType::boolean;
  else if constexpr (std::is_same_v<T, Half>)
    return DType::float16;
  else if constexpr (std::is_same_v<T, BFloat16>)
    return DType::bfloat16;
  else if constexpr (std::is_same_v<T, float>)
    return DType::float32;
  else {
    static_assert(std::is_same_v<T, double>, "not an element type");
    return DType::float64;
  }
}

constexpr size_t element_size(DType d) {
  constexpr std::array<size_t, kDTypeCount> sizes{1, 4, 8, 1, 2, 2, 4, 8};
  return sizes[static_cast<size_t>(d)];
}
constexpr bool is_floating_point(DType d) { return d >= DType::float16; }
constexpr bool is_integral(DType d) { return d < DType::boolean; }

constexpr const char* to_string(DType d) {
  constexpr std::array<const char*, kDTypeCount> names{"uint8",   "int32",    "int64",   "bool",
                                                       "float16", "bfloat16", "float32", "float64"};
  return names[static_cast<size_t>(d)];
}

std::ostream& operator<<(std::ostream& out, DType d);

/// The dtype of a binary operation on two tensors of one or more dimensions, as in PyTorch:
/// bool < uint8 < int32 < int64 < float16|bfloat16 < float32 < float64; float16 with bfloat16 gives float32.
DType promote_types(DType a, DType b);

/// The type a kernel computes in: float for the half types, the type itself otherwise
/// (through float, int64 16777217 + 0 would give 16777216).
template <class T>
using ComputeType = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

/// A set of dtypes, for kernel tables and error texts.
struct DTypeSet {
  uint16_t bits = 0;
  constexpr bool has(DType d) const { return bits >> static_cast<int>(d) & 1; }
  constexpr DTypeSet operator|(DTypeSet o) const { return {static_cast<uint16_t>(bits | o.bits)}; }
};
constexpr DTypeSet dtypes(auto... d) {
  return {static_cast<uint16_t>((0 | ... | (1 << static_cast<int>(d))))};
}
inline constexpr DTypeSet kFloatingTypes = dtypes(kFloat16, kBFloat16, kFloat32, kFloat64);
inline constexpr DTypeSet kIntegralTypes = dtypes(kUInt8, kInt32, kInt64);
inline constexpr DTypeSet kNumericTypes = kFloatingTypes | kIntegralTypes;
inline constexpr DTypeSet kAllTypes = kNumericTypes | dtypes(kBool);
/// "float16, float32"
std::string to_string(DTypeSet set);

template <class T>
struct TypeTag {
  using type = T;
};

namespace detail {
[[noreturn]] void refuse_visit(DType d, DTypeSet set);
}

/// Calls f(TypeTag<T>{}) with the element type of `d`, which must be in Set; the caller has checked that.
template <DTypeSet Set = kAllTypes, class F>
decltype(auto) visit_dtype(DType d, F&& f) {
  auto at = [&]<DType D>() -> decltype(auto) { return f(TypeTag<typename ElementType<D>::type>{}); };
  switch (d) {
    case DType::uint8:
      if constexpr (Set.has(kUInt8)) return at.template operator()<kUInt8>();
      break;
    case DType::int32:
      if constexpr (Set.has(kInt32)) return at.template operator()<kInt32>();
      break;
    case DType::int64:
      if constexpr (Set.has(kInt64)) return at.template operator()<kInt64>();
      break;
    case DType::boolean:
      if constexpr (Set.has(kBool)) return at.template operator()<kBool>();
      break;
    case DType::float16:
      if constexpr (Set.has(kFloat16)) return at.template operator()<kFloat16>();
      break;
    case DType::bfloat16:
      if constexpr (Set.has(kBFloat16)) return at.template operator()<kBFloat16>();
      break;
    case DType::float32:
      if constexpr (Set.has(kFloat32)) return at.template operator()<kFloat32>();
      break;
    case DType::float64:
      if constexpr (Set.has(kFloat64)) return at.template operator()<kFloat64>();
      break;
  }
  detail::refuse_visit(d, Set);
}

}  // namespace gradus
