// Copies between layouts and dtypes, and fill. Only contiguous rows are converted (one loop for each pair of
// dtypes); strided elements are moved by their size alone, through a small buffer, so that the code stays
// small.
#pragma once
#include <cstring>
#include <limits>
#include <utility>

#include "kernels/elementwise.cuh"

namespace gradus {

/// y[i] = x[i] converted to y's dtype; x broadcasts to y's sizes.
struct CopyArgs {
  TensorArg x, y;
  static constexpr auto operands = std::tuple{in(&CopyArgs::x), out(&CopyArgs::y)};
};

/// y[i] = value
struct FillArgs {
  TensorArg y;
  Scalar value;
  static constexpr auto operands = std::tuple{out(&FillArgs::y)};
};

namespace kernels {

/// A number in another element type. Floating point to integers truncates and saturates, NaN gives 0 (C++
/// leaves both undefined); uint8 keeps the low byte of that integer, so that -1.0 gives 255 as in PyTorch.
template <class To, class From>
GRADUS_HD To convert(From from) {
  const ComputeType<From> x = static_cast<ComputeType<From>>(from);
  if constexpr (std::is_same_v<To, bool>) {
    return x != 0;
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<ComputeType<From>>) {
    using Wide = std::conditional_t<sizeof(To) == 1, int64_t, To>;
    constexpr auto low = static_cast<ComputeType<From>>(std::numeric_limits<Wide>::min());
    if (x >= -low) return static_cast<To>(std::numeric_limits<Wide>::max());
    if (x < low) return static_cast<To>(std::numeric_limits<Wide>::min());
    return x == x ? static_cast<To>(static_cast<Wide>(x)) : To{0};
  } else {
    return static_cast<To>(x);
  }
}

namespace copy {

// Elements converted at a time: source and result fit in the first-level cache.
inline constexpr int64_t kChunk = 512;
// Edge of a transposed tile. 16 floats are a cache line.
inline constexpr int kTile = 16;

// Calls f with an unsigned integer type of `bytes` bytes.
template <class F>
void visit_size(size_t bytes, const F& f) {
  switch (bytes) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    default:
      return f(uint64_t{});
  }
}

template <class W>
void move_row(int64_t n, W* y, int64_t sy, const W* x, int64_t sx) {
  if (sy == 1 && sx == 1) {
    std::memcpy(y, x, static_cast<size_t>(n) * sizeof(W));
  } else if (sy == 1 && sx == 0) {
    std::fill_n(y, n, *x);
  } else {
    for (int64_t i = 0; i < n; ++i) y[i * sy] = x[i * sx];
  }
}

#if defined(__GNUC__) && !defined(__CUDACC__)
// One step of transposing a full tile in registers: swaps the off-diagonal blocks of size S.
template <int S, class V, int... J>
void swap_blocks(V (&row)[kTile], std::integer_sequence<int, J...>) {
  for (int i = 0; i < kTile; ++i) {
    if (i & S) continue;
    const V a = row[i], b = row[i + S];
    row[i] = __builtin_shufflevector(a, b, (J & S ? kTile + J - S : J)...);
    row[i + S] = __builtin_shufflevector(a, b, (J & S ? kTile + J : J + S)...);
  }
}

template <class W>
void transpose_full_tile(W* y, int64_t yb, const W* x, int64_t xa) {
  typedef W V __attribute__((vector_size(kTile * sizeof(W))));
  constexpr auto lanes = std::make_integer_sequence<int, kTile>();
  V row[kTile];
  for (int a = 0; a < kTile; ++a) std::memcpy(&row[a], x + a * xa, sizeof(V));
  swap_blocks<8>(row, lanes);
  swap_blocks<4>(row, lanes);
  swap_blocks<2>(row, lanes);
  swap_blocks<1>(row, lanes);
  for (int b = 0; b < kTile; ++b) std::memcpy(y + b * yb, &row[b], sizeof(V));
}
#endif

// y[b * yb + a] = x[a * xa + b] for a < na, b < nb, by way of a buffer: reading x down a column would bring
// in each cache line 16 times, and where xa is a power of two all of them fall into one cache set.
template <class W>
void transpose_tile(int64_t na, int64_t nb, W* y, int64_t yb, const W* x, int64_t xa) {
#if defined(__GNUC__) && !defined(__CUDACC__)
  if (na == kTile && nb == kTile) return transpose_full_tile(y, yb, x, xa);
#endif
  W tile[kTile][kTile];
  for (int64_t a = 0; a < na; ++a) std::memcpy(tile[a], x + a * xa, static_cast<size_t>(nb) * sizeof(W));
  for (int64_t b = 0; b < nb; ++b)
    for (int64_t a = 0; a < na; ++a) y[b * yb + a] = tile[a][b];
}

// The dimension along which x is contiguous while y is not, where y's innermost one is contiguous: the copy
// is a transposition of these two (NCHW to NHWC and back, .t().contiguous()). -1: it is none.
inline int transposed_dim(const elementwise::LoopNest<1>& nest) {
  const int inner = nest.ndim - 1;
  if (nest.strides[inner][0] != 1 || nest.strides[inner][1] == 1) return -1;
  for (int d = 0; d < inner; ++d)
    if (nest.strides[d][1] == 1) return d;
  return -1;
}

template <class W>
void transpose(const elementwise::LoopNest<1>& nest, int dim, W* y, const W* x) {
  const int inner = nest.ndim - 1;
  const int64_t na = nest.sizes[inner], nb = nest.sizes[dim];
  const int64_t xa = nest.strides[inner][1], yb = nest.strides[dim][0];
  const int64_t strips = (nb + kTile - 1) / kTile;
  int64_t count = strips;
  for (int d = 0; d < inner; ++d)
    if (d != dim) count *= nest.sizes[d];
  const int64_t grain = std::max<int64_t>(1, elementwise::kGrain / (kTile * na + 1));
  parallel_for(0, count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const int64_t b = k % strips * kTile;
      int64_t at_y = b * yb, at_x = b, rest = k / strips;
      for (int d = inner - 1; d >= 0; --d) {
        if (d == dim) continue;
        at_y += rest % nest.sizes[d] * nest.strides[d][0];
        at_x += rest % nest.sizes[d] * nest.strides[d][1];
        rest /= nest.sizes[d];
      }
      for (int64_t a = 0; a < na; a += kTile)
        transpose_tile(std::min<int64_t>(kTile, na - a), std::min<int64_t>(kTile, nb - b), y + at_y + a, yb,
                       x + at_x + a * xa, xa);
    }
  });
}

inline void move_elements(const CopyArgs& args) {
  visit_size(element_size(args.y.dtype), [&]<class W>(W) {
    const elementwise::LoopNest<1> nest = elementwise::make_loop<1>(args.y, {&args.x});
    if (const int dim = transposed_dim(nest); dim >= 0)
      return transpose(nest, dim, args.y.data<W>(), args.x.data<W>());
    elementwise::for_each_row<1>(args.y, {&args.x}, [&](int64_t n, const int64_t* at, const int64_t* s) {
      move_row(n, args.y.data<W>() + at[0], s[0], args.x.data<W>() + at[1], s[1]);
    });
  });
}

// Converts n contiguous elements.
using ConvertRow = void (*)(int64_t n, void* y, const void* x);

template <class To, class From>
void convert_row(int64_t n, void* y, const void* x) {
  auto* to = static_cast<To*>(y);
  auto* from = static_cast<const From*>(x);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) to[i] = convert<To>(from[i]);
}

inline ConvertRow find_convert_row(DType to, DType from) {
  return visit_dtype(to, [&]<class To>(TypeTag<To>) {
    return visit_dtype(from, [&]<class From>(TypeTag<From>) -> ConvertRow {
      if constexpr (std::is_same_v<To, From>)
        return nullptr;
      else
        return &convert_row<To, From>;
    });
  });
}

// Moves n elements of `size` bytes between rows of any strides.
inline void move_row(size_t size, int64_t n, void* y, int64_t sy, const void* x, int64_t sx) {
  visit_size(size, [&]<class W>(W) { move_row(n, static_cast<W*>(y), sy, static_cast<const W*>(x), sx); });
}

inline void convert_elements(const CopyArgs& args) {
  const ConvertRow convert = find_convert_row(args.y.dtype, args.x.dtype);
  const auto y_size = static_cast<int64_t>(element_size(args.y.dtype));
  const auto x_size = static_cast<int64_t>(element_size(args.x.dtype));
  elementwise::for_each_row<1>(args.y, {&args.x}, [&](int64_t n, const int64_t* at, const int64_t* s) {
    char* y = args.y.data<char>() + at[0] * y_size;
    const char* x = args.x.data<char>() + at[1] * x_size;
    if (s[0] == 1 && s[1] == 1) return convert(n, y, x);
    alignas(64) char from[kChunk * 8], to[kChunk * 8];
    for (int64_t i = 0; i < n; i += kChunk) {
      const int64_t m = std::min(kChunk, n - i);
      move_row(static_cast<size_t>(x_size), m, from, 1, x + i * s[1] * x_size, s[1]);
      convert(m, to, from);
      move_row(static_cast<size_t>(y_size), m, y + i * s[0] * y_size, s[0], to, 1);
    }
  });
}

}  // namespace copy

inline void copy_host(const CopyArgs& args, const Stream&) {
  if (args.x.dtype == args.y.dtype) {
    copy::move_elements(args);
  } else {
    copy::convert_elements(args);
  }
}

/// The number converted to `dtype`, in the first bytes.
inline uint64_t scalar_bits(Scalar number, DType dtype) {
  uint64_t bits = 0;
  visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
    const T value =
        number.is_floating_point() ? convert<T>(number.to<double>()) : convert<T>(number.to<int64_t>());
    std::memcpy(&bits, &value, sizeof value);
  });
  return bits;
}

inline void fill_host(const FillArgs& args, const Stream&) {
  const uint64_t bits = scalar_bits(args.value, args.y.dtype);
  copy::visit_size(element_size(args.y.dtype), [&]<class W>(W) {
    W word;
    std::memcpy(&word, &bits, sizeof word);
    elementwise::for_each_row<1>(args.y, {&args.y}, [&](int64_t n, const int64_t* at, const int64_t* s) {
      copy::move_row(n, args.y.data<W>() + at[0], s[0], &word, 0);
    });
  });
}

/// The same on a GPU. backends/cuda/copy.cu
void copy_cuda(const CopyArgs& args, const Stream& stream);
void fill_cuda(const FillArgs& args, const Stream& stream);

// Their twins on a GPU.
void copy_cuda(const CopyArgs& args, const Stream& stream);
void fill_cuda(const FillArgs& args, const Stream& stream);

}  // namespace kernels
}  // namespace gradus
