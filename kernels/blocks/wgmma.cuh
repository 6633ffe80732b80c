// Products of matrices that lie in shared memory: wgmma (sm_90a), and the same on the CPU.
//
// A warpgroup, four warps, adds the product of A (64 x 16) and B (16 x N), bfloat16, to sums in its
// registers. The tensor cores read A and B themselves and beside the threads, which begin products, go on,
// and wait.
//
// A matrix lies in slabs: rows of 64 elements, that is 128 bytes or all banks. The eight 16-byte words of a
// row are permuted ("128-byte swizzle"), another way in each of 8 successive rows, so that a column of words,
// too, lies in all banks. A slab begins at a multiple of 1024 bytes.
#pragma once
#include <gradus/base/half.h>

#include <algorithm>
#include <array>
#include <deque>
#include <kernels/blocks/block.cuh>
#include <limits>
#include <vector>

namespace gradus::kernels {

inline constexpr int kWarpgroupSize = 4 * kWarpSize;
inline constexpr int kSlabCols = 64, kSlabAlignment = 1024;

/// Where an element lies in a slab, counted in elements.
GRADUS_HD constexpr int in_slab(int row, int col) {
  return row * kSlabCols + (col / 8 ^ row % 8) * 8 + col % 8;
}

/// The first place for a slab at or after `memory`.
GRADUS_HD inline BFloat16* first_slab(BFloat16* memory) {
  constexpr uintptr_t kMask = kSlabAlignment - 1;
  return memory + (-reinterpret_cast<uintptr_t>(memory) & kMask) / sizeof(BFloat16);
}

/// A or B of a product. Of A, each row is a row of one slab ("K-major"), `stride` bytes from 8 rows to the
/// next
/// 8. Of B, 64 columns are a slab, whose rows are B's ("MN-major"): `stride` bytes from 8 rows to the next 8,
/// and `leading` bytes from 64 columns to the next 64. `start` is where the first element lies.
struct SlabMatrix {
  const BFloat16* start;
  int stride, leading;
};

/// The same as an operand of wgmma. `start` is an address in shared memory, a multiple of 16.
GRADUS_HD constexpr uint64_t slab_descriptor(uint32_t start, int stride, int leading) {
  constexpr auto field = [](uint64_t bytes) { return (bytes & 0x3ffff) >> 4; };
  constexpr uint64_t kSwizzle128 = 1;
  return field(start) | field(static_cast<uint64_t>(leading)) << 16 |
         field(static_cast<uint64_t>(stride)) << 32 | kSwizzle128 << 62;
}

struct SumPlace {
  int row, col;
};
/// The place in the 64 x N sums of element e < N / 2 of a thread of the warpgroup.
GRADUS_HD constexpr SumPlace place_of_sum(int thread, int e) {
  const int warp = thread / kWarpSize, lane = thread % kWarpSize;
  return {warp * 16 + lane / 4 + e / 2 % 2 * 8, e / 4 * 8 + lane % 4 * 2 + e % 2};
}

/// One thread's products, which all threads of its warpgroup begin alike. begin() comes before the first
/// after the sums were written; multiply() begins sum += A B; commit() closes a group; wait<N>(sum) returns
/// when all but the last N groups are done, and with N = 0 the sums may be read.
///
/// publish() comes between a thread's writes to shared memory and the sync() after which they are multiplied.
///
/// On the CPU a product is made by wait(), and is NaN where A or B were other numbers when it began: nobody
/// knows when a tensor core reads.
template <Block B>
class WarpgroupProducts {
 public:
  void begin() const {}
  void publish() const {}

  template <size_t kSums>
  void multiply(B& block, float (&sum)[kSums], const SlabMatrix& a, const SlabMatrix& b) {
    const auto warp = block.warp_gather(a.start);  // all lanes must come, with the same matrix
    GRADUS_ASSERT(warp.front() == a.start && warp.back() == a.start);
    Product product{sum, kSums, block.thread_rank() % kWarpgroupSize, a, b, {}};
    product.seen = product.read();
    open_.push_back(std::move(product));
  }
  void commit() {
    groups_.push_back(std::move(open_));
    open_.clear();
  }
  template <int N, size_t kSums>
  void wait(float (&)[kSums]) {
    for (; groups_.size() > N; groups_.pop_front())
      for (Product& product : groups_.front()) product.finish();
  }

 private:
  struct Product {
    float* sum;
    size_t sums;
    int thread;
    SlabMatrix a, b;
    std::vector<float> seen;

    // As the hardware finds it: the swizzle is of the address.
    static float at(const SlabMatrix& m, size_t bytes) {
      auto address = reinterpret_cast<uintptr_t>(m.start) + bytes;
      address ^= (address >> 7 & 7) << 4;
      return static_cast<float>(*reinterpret_cast<const BFloat16*>(address));
    }
    static size_t rows(const SlabMatrix& m, int row) {
      return static_cast<size_t>(row / 8 * m.stride + row % 8 * 128);
    }
    // What this thread's sums are made of: rows of A, then columns of B, 16 numbers each.
    std::vector<float> read() const {
      std::vector<float> all;
      for (const int e : {0, 2})
        for (int k = 0; k < 16; ++k)
          all.push_back(at(a, rows(a, place_of_sum(thread, e).row) + static_cast<size_t>(k) * 2));
      for (size_t e = 0; e < sums; e += e % 2 == 0 ? 1 : 3) {
        const int col = place_of_sum(thread, static_cast<int>(e)).col;
        for (int k = 0; k < 16; ++k)
          all.push_back(at(b, rows(b, k) + static_cast<size_t>(col / 64 * b.leading + col % 64 * 2)));
      }
      return all;
    }
    void finish() {
      const std::vector<float> now = read();
      const bool same = std::equal(now.begin(), now.end(), seen.begin(), [](float x, float y) {
        return bit_cast<uint32_t>(x) == bit_cast<uint32_t>(y);
      });
      for (size_t e = 0; e < sums; ++e) {
        const float *row = &now[e / 2 % 2 * 16], *col = &now[32 + (e / 4 * 2 + e % 2) * 16];
        for (int k = 0; k < 16; ++k) sum[e] += row[k] * col[k];
        if (!same) sum[e] = std::numeric_limits<float>::quiet_NaN();
      }
    }
  };
  std::vector<Product> open_;
  std::deque<std::vector<Product>> groups_;
};

#ifdef __CUDACC__
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define GRADUS_WGMMA(...) asm volatile(__VA_ARGS__)
#else
#define GRADUS_WGMMA(...) __trap()  // sm_90a has it, and no other
#endif
#define GRADUS_SUMS_8(i)                                                                                  \
  "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3]), "+f"(sum[i + 4]), "+f"(sum[i + 5]), \
      "+f"(sum[i + 6]), "+f"(sum[i + 7])
#define GRADUS_SUMS_32(i) GRADUS_SUMS_8(i), GRADUS_SUMS_8(i + 8), GRADUS_SUMS_8(i + 16), GRADUS_SUMS_8(i + 24)

template <>
class WarpgroupProducts<CudaBlock> {
 public:
  __device__ void begin() const { GRADUS_WGMMA("wgmma.fence.sync.aligned;" ::: "memory"); }
  __device__ void publish() const { GRADUS_WGMMA("fence.proxy.async.shared::cta;" ::: "memory"); }

  /// N = 256. The last two numbers: A lies by rows, B too, which is the transposed way for it.
  __device__ void multiply(CudaBlock&, float (&sum)[128], const SlabMatrix& a, const SlabMatrix& b) const {
    [[maybe_unused]] const uint64_t x = descriptor_of(a), y = descriptor_of(b);
    GRADUS_WGMMA(
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, "
        "%21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, "
        "%40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, "
        "%59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, "
        "%78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, "
        "%97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, "
        "%113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
        "%128, %129, 1, 1, 1, 0, 1;"
        : GRADUS_SUMS_32(0), GRADUS_SUMS_32(32), GRADUS_SUMS_32(64), GRADUS_SUMS_32(96)
        : "l"(x), "l"(y));
  }
  __device__ void commit() const { GRADUS_WGMMA("wgmma.commit_group.sync.aligned;" ::: "memory"); }
  template <int N>
  __device__ void wait(float (&sum)[128]) const {
    GRADUS_WGMMA("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
    if constexpr (N == 0) {  // no sum is read earlier
      GRADUS_UNROLL
      for (float& s : sum) asm volatile("" : "+f"(s)::"memory");
    }
  }

 private:
  __device__ static uint64_t descriptor_of(const SlabMatrix& m) {
    return slab_descriptor(static_cast<uint32_t>(__cvta_generic_to_shared(m.start)), m.stride, m.leading);
  }
};
#undef GRADUS_SUMS_32
#undef GRADUS_SUMS_8
#undef GRADUS_WGMMA
#endif

}  // namespace gradus::kernels
