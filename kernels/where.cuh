// y = condition ? a : b. The values are only moved, so there is a kernel for each size, not for each dtype.
#pragma once
#include "kernels/copy.cuh"

namespace gradus {

/// y = condition ? a : b, broadcast to y's sizes; a, b and y are of one dtype.
struct WhereArgs {
  TensorArg condition, a, b, y;
  static constexpr auto operands =
      std::tuple{in(&WhereArgs::condition), in(&WhereArgs::a), in(&WhereArgs::b), out(&WhereArgs::y)};
};

/// y = mask ? value : x, broadcast to y's sizes.
struct MaskedFillArgs {
  TensorArg x, mask, y;
  uint64_t value_bits;  // of y's dtype, in the first bytes
  static constexpr auto operands =
      std::tuple{in(&MaskedFillArgs::x), in(&MaskedFillArgs::mask), out(&MaskedFillArgs::y)};
};

namespace kernels {

// A bool is a byte that is 0 or 1; read as such, the loops become vector code.
template <class W>
[[gnu::noinline]] void where_row(int64_t n, W* y, int64_t sy, const uint8_t* c, int64_t sc, const W* a,
                                 int64_t sa, const W* b, int64_t sb) {
  if (sy == 1 && sc == 1 && sa == 1 && sb == 1) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = c[i] ? a[i] : b[i];
  } else if (sy == 1 && sc == 1 && sa == 0 && sb == 1) {
    const W av = *a;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = c[i] ? av : b[i];
  } else {
    for (int64_t i = 0; i < n; ++i) y[i * sy] = c[i * sc] ? a[i * sa] : b[i * sb];
  }
}

inline void where_host(const WhereArgs& args, const Stream&) {
  copy::visit_size(element_size(args.y.dtype), [&]<class W>(W) {
    elementwise::for_each_row<3>(
        args.y, {&args.condition, &args.a, &args.b}, [&](int64_t n, const int64_t* at, const int64_t* s) {
          where_row(n, args.y.data<W>() + at[0], s[0], args.condition.data<const uint8_t>() + at[1], s[1],
                    args.a.data<const W>() + at[2], s[2], args.b.data<const W>() + at[3], s[3]);
        });
  });
}

inline void masked_fill_host(const MaskedFillArgs& args, const Stream&) {
  copy::visit_size(element_size(args.y.dtype), [&]<class W>(W) {
    W value;
    std::memcpy(&value, &args.value_bits, sizeof value);
    elementwise::for_each_row<2>(
        args.y, {&args.mask, &args.x}, [&](int64_t n, const int64_t* at, const int64_t* s) {
          where_row(n, args.y.data<W>() + at[0], s[0], args.mask.data<const uint8_t>() + at[1], s[1], &value,
                    0, args.x.data<const W>() + at[2], s[2]);
        });
  });
}

// Their twins on a GPU.
void where_cuda(const WhereArgs& args, const Stream& stream);
void masked_fill_cuda(const MaskedFillArgs& args, const Stream& stream);

}  // namespace kernels
}  // namespace gradus
