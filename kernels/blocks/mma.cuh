// The tensor cores' instruction mma.m16n8k16 on bfloat16, and the same on the CPU.
//
// A warp holds the matrices A (16 x 16), B (16 x 8) and C (16 x 8) in its registers, each thread a few
// elements: its fragment. Which ones is laid down in the PTX manual; the place_x() functions say it here.
#pragma once
#include <gradus/base/bits.h>
#include <gradus/base/half.h>

#include <kernels/blocks/block.cuh>

namespace gradus::kernels {

/// Words of two bfloat16, the one with the lower index in the lower half.
struct FragmentA {
  uint32_t word[4];
};
struct FragmentB {
  uint32_t word[2];
};
struct FragmentC {
  float v[4];
};

struct Place {
  int row, col;
};
/// The place in A of element e < 8 of a lane's fragment.
GRADUS_HD constexpr Place place_a(int lane, int e) {
  return {lane / 4 + e / 2 % 2 * 8, lane % 4 * 2 + e % 2 + e / 4 * 8};
}
/// In B, e < 4.
GRADUS_HD constexpr Place place_b(int lane, int e) { return {lane % 4 * 2 + e % 2 + e / 2 * 8, lane / 4}; }
/// In C, e < 4.
GRADUS_HD constexpr Place place_c(int lane, int e) { return {lane / 4 + e / 2 * 8, lane % 4 * 2 + e % 2}; }

namespace detail {
inline uint32_t pack(BFloat16 low, BFloat16 high) {
  return low.bits | static_cast<uint32_t>(high.bits) << 16;
}
// Element e of a fragment's words.
inline float unpack(const uint32_t* word, int e) {
  return bit_cast<float>(e % 2 == 0 ? word[e / 2] << 16 : word[e / 2] & 0xffff0000u);
}
struct Operands {
  FragmentA a;
  FragmentB b;
};
}  // namespace detail

/// Loads A from shared memory, row-major, rows `stride` elements apart, each at a multiple of 16 bytes.
template <Block B>
void load_a(B& block, FragmentA& a, const BFloat16* tile, int stride) {
  const int lane = block.thread_rank() % kWarpSize;
  for (int w = 0; w < 4; ++w) {
    const Place at = place_a(lane, 2 * w);
    const BFloat16* pair = tile + at.row * stride + at.col;
    a.word[w] = detail::pack(pair[0], pair[1]);
  }
}

/// Loads two Bs that lie side by side, 16 x 16 elements, row-major.
template <Block B>
void load_b(B& block, FragmentB& left, FragmentB& right, const BFloat16* tile, int stride) {
  const int lane = block.thread_rank() % kWarpSize;
  for (int w = 0; w < 2; ++w) {
    const Place at = place_b(lane, 2 * w);
    const BFloat16* pair = tile + at.row * stride + at.col;
    left.word[w] = detail::pack(pair[0], pair[stride]);
    right.word[w] = detail::pack(pair[8], pair[stride + 8]);
  }
}

/// C += A B. The products are exact; the order of a tensor core's sums is not known, here it is that of k.
template <Block B>
void mma(B& block, FragmentC& c, const FragmentA& a, const FragmentB& b) {
  const auto warp = block.warp_gather(detail::Operands{a, b});
  for (int e = 0; e < 4; ++e) {
    const Place at = place_c(block.thread_rank() % kWarpSize, e);
    float row[16], col[16];
    // What the row and the column hold, by the lanes and elements that place_a() and place_b() name.
    for (int k = 0; k < 16; ++k) {
      row[k] = detail::unpack(warp[at.row % 8 * 4 + k % 8 / 2].a.word, k / 8 * 4 + at.row / 8 * 2 + k % 2);
      col[k] = detail::unpack(warp[at.col * 4 + k % 8 / 2].b.word, k / 8 * 2 + k % 2);
    }
    for (int k = 0; k < 16; ++k) c.v[e] += row[k] * col[k];
  }
}

#ifdef __CUDACC__
// ldmatrix loads four matrices of 8 x 8; lane l gives the address of row l % 8 of matrix l / 8.
__device__ inline uint32_t ldmatrix_address(const CudaBlock& block, const BFloat16* tile, int stride) {
  const int lane = block.thread_rank() % kWarpSize;
  return static_cast<uint32_t>(__cvta_generic_to_shared(tile + lane % 16 * stride + lane / 16 * 8));
}

__device__ inline void load_a(CudaBlock& block, FragmentA& a, const BFloat16* tile, int stride) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(a.word[0]), "=r"(a.word[1]), "=r"(a.word[2]), "=r"(a.word[3])
               : "r"(ldmatrix_address(block, tile, stride))
               : "memory");
}

// Transposed, since the two elements of a word lie below one another.
__device__ inline void load_b(CudaBlock& block, FragmentB& left, FragmentB& right, const BFloat16* tile,
                              int stride) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(left.word[0]), "=r"(left.word[1]), "=r"(right.word[0]), "=r"(right.word[1])
               : "r"(ldmatrix_address(block, tile, stride))
               : "memory");
}

__device__ inline void mma(CudaBlock&, FragmentC& c, const FragmentA& a, const FragmentB& b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c.v[0]), "+f"(c.v[1]), "+f"(c.v[2]), "+f"(c.v[3])
      : "r"(a.word[0]), "r"(a.word[1]), "r"(a.word[2]), "r"(a.word[3]), "r"(b.word[0]), "r"(b.word[1]));
#else
  __trap();  // no such instruction before sm_80
#endif
}
#endif

}  // namespace gradus::kernels
