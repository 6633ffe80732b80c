// What a cooperative kernel body runs on. Names follow CUDA's cooperative groups.
//
// A body is a plain struct of pointers and sizes with a call operator templated on the block. Three blocks
// run it: SerialBlock (one thread plays all), ThreadBlock (thread_block.h: a std::thread per CUDA thread) and
// CudaBlock.
#pragma once
#include <gradus/base/bits.h>
#include <gradus/base/dtype.h>
#include <gradus/base/macros.h>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace gradus::kernels {

inline constexpr int kWarpSize = 32;
inline constexpr int kMaxBlockSize = 1024;

/// thread_rank() of size() threads; group_index() of the block in its grid; sync() waits for all threads of
/// the block; shuffle_xor(v, m) gives the v of the thread whose lane in the warp differs by the bits m <
/// warp_size(); shared<T>(n) gives the next n elements of the block's shared memory, the same to each thread.
template <class B>
concept Block = requires(B& block, float value) {
  { block.thread_rank() } -> std::same_as<int>;
  { block.size() } -> std::same_as<int>;
  { block.warp_size() } -> std::same_as<int>;
  { block.group_index() } -> std::same_as<int64_t>;
  block.sync();
  { block.shuffle_xor(value, 1) } -> std::same_as<float>;
  { block.template shared<float>(1) } -> std::same_as<float*>;
};

/// Bytes that shared<T>(n) takes: a multiple of 16, so that any type may follow.
template <class T>
GRADUS_HD constexpr size_t shared_size(int64_t n) {
  return (static_cast<size_t>(n) * sizeof(T) + 15) / 16 * 16;
}

/// What a body declares beside its call operator: its name for messages, the block sizes it can run with, the
/// number of blocks for a block size and the shared memory that each needs.
template <class Body>
concept Kernel = requires(const Body& body, int block_size) {
  { Body::kName } -> std::convertible_to<const char*>;
  { Body::supports(block_size) } -> std::same_as<bool>;
  { body.groups(block_size) } -> std::same_as<int64_t>;
  { body.shared_bytes(block_size) } -> std::same_as<size_t>;
};

/// The block sizes of bodies whose threads meet in sync() only, or never.
constexpr bool any_size(int n) { return n >= 1 && n <= kMaxBlockSize; }
/// The block sizes of bodies that shuffle: a power of two below a warp, or whole warps. Elsewhere shuffle_xor
/// would reach threads that do not exist.
constexpr bool whole_warps(int n) {
  return any_size(n) && (n % kWarpSize == 0 || (n < kWarpSize && (n & (n - 1)) == 0));
}

/// Blocks of `block_size` threads that n elements need, one each.
constexpr int64_t blocks_for(int64_t n, int block_size) { return (n + block_size - 1) / block_size; }

/// The element of the calling thread in a kernel of one thread an element.
template <Block B>
GRADUS_HD int64_t element(const B& block) {
  return block.group_index() * block.size() + block.thread_rank();
}

/// A block of one thread, which does the work of all: the reference.
class SerialBlock {
 public:
  SerialBlock(int64_t group, std::byte* shared) : group_(group), shared_(shared) {}
  int thread_rank() const { return 0; }
  int size() const { return 1; }
  int warp_size() const { return 1; }
  int64_t group_index() const { return group_; }
  void sync() const {}
  template <class T>
  T shuffle_xor(T value, int) const {
    return value;
  }
  template <class T>
  T* shared(int64_t n) {
    auto* start = reinterpret_cast<T*>(shared_);
    shared_ += shared_size<T>(n);
    return start;
  }

 private:
  int64_t group_;
  std::byte* shared_;
};

#ifdef __CUDACC__
/// The block of threads that CUDA runs.
class CudaBlock {
 public:
  __device__ explicit CudaBlock(int64_t group) : group_(group) {}
  __device__ int thread_rank() const { return static_cast<int>(threadIdx.x); }
  __device__ int size() const { return static_cast<int>(blockDim.x); }
  __device__ int warp_size() const { return size() < kWarpSize ? size() : kWarpSize; }
  __device__ int64_t group_index() const { return group_; }
  __device__ void sync() const { __syncthreads(); }
  template <class T>
  __device__ T shuffle_xor(T value, int mask) const {
    static_assert(sizeof(T) % 4 == 0, "shuffle whole 32-bit words");
    struct Words {
      uint32_t word[sizeof(T) / 4];
    };
    auto words = bit_cast<Words>(value);
    const unsigned lanes = size() < kWarpSize ? (1u << size()) - 1 : 0xffffffffu;
    for (uint32_t& word : words.word) word = __shfl_xor_sync(lanes, word, mask);
    return bit_cast<T>(words);
  }
  template <class T>
  __device__ T* shared(int64_t n) {
    extern __shared__ __align__(16) unsigned char memory[];
    auto* start = reinterpret_cast<T*>(memory + used_);
    used_ += shared_size<T>(n);
    return start;
  }

 private:
  int64_t group_;
  size_t used_ = 0;
};
#endif

}  // namespace gradus::kernels
