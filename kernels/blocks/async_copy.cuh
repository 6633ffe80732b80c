// Copies from global to shared memory that run beside the computation: cp.async (sm_80).
#pragma once
#include <cstring>
#include <deque>
#include <kernels/blocks/block.cuh>
#include <vector>

namespace gradus::kernels {

/// One thread's copies, in groups. copy<Bytes>(to, from), with 4 or 16 bytes and both addresses multiples of
/// that, begins a copy; commit() closes a group; wait<N>() returns when all but the last N groups have
/// arrived. That holds for the calling thread's copies: sync() then tells the others.
///
/// On the CPU the bytes are NaN until wait(), since nobody knows when they arrive, and are written at both
/// ends: what reads too early gets NaN, and ThreadSanitizer sees what still reads when a copy begins.
template <Block B>
class AsyncCopies {
 public:
  template <int Bytes>
  void copy(void* to, const void* from) {
    static_assert(Bytes == 4 || Bytes == 16);
    GRADUS_ASSERT(reinterpret_cast<uintptr_t>(to) % Bytes == 0);
    GRADUS_ASSERT(reinterpret_cast<uintptr_t>(from) % Bytes == 0);
    std::memset(to, 0xff, Bytes);
    open_.push_back({to, from, Bytes});
  }
  void commit() {
    groups_.push_back(std::move(open_));
    open_.clear();
  }
  template <int N>
  void wait() {
    for (; groups_.size() > N; groups_.pop_front())
      for (const Copy& c : groups_.front()) std::memcpy(c.to, c.from, c.bytes);
  }

 private:
  struct Copy {
    void* to;
    const void* from;
    size_t bytes;
  };
  std::vector<Copy> open_;
  std::deque<std::vector<Copy>> groups_;
};

#ifdef __CUDACC__
/// Before sm_80 the copies are plain ones, done at once.
template <>
class AsyncCopies<CudaBlock> {
 public:
  template <int Bytes>
  __device__ void copy(void* to, const void* from) {
    static_assert(Bytes == 4 || Bytes == 16);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    const auto shared = static_cast<uint32_t>(__cvta_generic_to_shared(to));
    if constexpr (Bytes == 16)  // past the L1 cache, which only 16 bytes can be
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(from) : "memory");
    else
      asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared), "l"(from) : "memory");
#else
    using Word = std::conditional_t<Bytes == 16, uint4, uint32_t>;
    *static_cast<Word*>(to) = *static_cast<const Word*>(from);
#endif
  }
  __device__ void commit() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
  }
  template <int N>
  __device__ void wait() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
  }
};
#endif

}  // namespace gradus::kernels
