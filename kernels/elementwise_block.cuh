// Element-wise kernels for blocks of threads: y[i] = f(x0[i], x1[i], …) over broadcast, strided operands. On
// a GPU such a kernel waits for memory, so all is about that: 16 bytes an access where the layout allows it,
// several accesses of a thread under way at once, and neighbouring threads at neighbouring addresses.
#pragma once
#include <kernels/blocks/launch.cuh>
#include <kernels/blocks/nest.cuh>
#include <kernels/blocks/pack.cuh>
#include <tuple>
#include <utility>

namespace gradus::kernels {

/// V elements at a time, of operands of which each has them side by side or, repeated, one for all; V = 1:
/// any strides. f takes and gives what the host's loops use: ComputeType<X>.
template <class F, int V, class Y, class... X>
class Elementwise {
 public:
  static constexpr const char* kName = "elementwise";
  static constexpr int kOperands = 1 + sizeof...(X);
  /// Of each thread.
  static constexpr int kVectors = V == 1 ? 4 : V < 8 ? 2 : 1;

  /// `operands`: y's address, then those of x.
  template <int N>
  Elementwise(const F& f, const elementwise::LoopNest<N>& loop, void* const (&operands)[kOperands])
      : f_(f), nest_(in_vectors(loop)) {
    n_ = 1;
    for (int d = 0; d < loop.ndim; ++d) n_ *= static_cast<uint32_t>(loop.sizes[d]);
    for (int k = 0; k < kOperands; ++k) {
      operands_[k] = operands[k];
      repeated_[k] = loop.strides[loop.ndim - 1][k] == 0;
    }
  }

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int block_size) const { return blocks_for(nest_.count, block_size * kVectors); }
  size_t shared_bytes(int) const { return 0; }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    run(block, std::index_sequence_for<X...>());
  }

 private:
  // The vectors of a block lie together, those of a thread a block's width apart.
  template <Block B, size_t... K>
  GRADUS_HD void run(B& block, std::index_sequence<K...>) const {
    const auto step = static_cast<uint32_t>(block.size());
    const uint32_t first = static_cast<uint32_t>(block.group_index()) * step * kVectors +
                           static_cast<uint32_t>(block.thread_rank());
    if (first >= nest_.count) return;
    uint32_t index[kVectors], at[kVectors][kOperands];
    GRADUS_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      // Past the end the thread's first once more, which is not stored. (Not the last of all: in place, the
      // thread whose it is may be writing it.)
      const uint32_t i = first + static_cast<uint32_t>(v) * step;
      index[v] = i < nest_.count ? i : first;
    }
    nest_.locate(index, at);
    std::tuple<Pack<X, V>...> x[kVectors];
    GRADUS_UNROLL
    for (int v = 0; v < kVectors; ++v)
      ((std::get<K>(x[v]) = load<X, K + 1>(elements_from(index[v]), at[v][K + 1])), ...);
    GRADUS_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      Pack<Y, V> y;
      GRADUS_UNROLL
      for (int j = 0; j < V; ++j)
        y.v[j] = static_cast<Y>(f_(static_cast<ComputeType<X>>(std::get<K>(x[v]).v[j])...));
      if (first + static_cast<uint32_t>(v) * step < nest_.count) store(y, elements_from(index[v]), at[v][0]);
    }
  }

  // How many elements there are from vector i on; the last vector may have fewer than V.
  GRADUS_HD uint32_t elements_from(uint32_t i) const { return n_ - i * V; }

  template <class T, int K>
  GRADUS_HD Pack<T, V> load(uint32_t left, uint32_t at) const {
    const T* from = static_cast<const T*>(operands_[K]) + at;
    Pack<T, V> pack;
    if constexpr (V == 1) {
      pack.v[0] = *from;
    } else if (repeated_[K]) {
      const T one = *from;
      GRADUS_UNROLL
      for (int j = 0; j < V; ++j) pack.v[j] = one;
    } else if (left >= V) {
      pack = load_pack<V>(from);
    } else {
      GRADUS_UNROLL
      for (int j = 0; j < V; ++j) pack.v[j] = from[static_cast<uint32_t>(j) < left ? j : 0];
    }
    return pack;
  }
  GRADUS_HD void store(const Pack<Y, V>& pack, uint32_t left, uint32_t at) const {
    Y* to = static_cast<Y*>(operands_[0]) + at;
    if (V == 1) {
      *to = pack.v[0];
    } else if (left >= V) {
      store_pack(to, pack);
    } else {
      GRADUS_UNROLL
      for (int j = 0; j < V; ++j)
        if (static_cast<uint32_t>(j) < left) to[j] = pack.v[j];
    }
  }

  // The loop with its innermost dimension counted in vectors.
  template <int N>
  static Nest<kOperands> in_vectors(elementwise::LoopNest<N> loop) {
    const int inner = loop.ndim - 1;
    loop.sizes[inner] = (loop.sizes[inner] + V - 1) / V;
    for (int64_t& stride : loop.strides[inner]) stride *= V;
    return Nest<kOperands>(loop);
  }

  F f_;
  Nest<kOperands> nest_;
  uint32_t n_;
  void* operands_[kOperands];
  bool repeated_[kOperands];
};

namespace elementwise_block {

// Can the loop go in vectors of V? They must begin at multiples of their size in each operand that they are
// read from or written to. Of several rows each must be whole vectors; only the last of all may be shorter.
template <int N>
[[gnu::noinline]] bool has_vectors(const elementwise::LoopNest<N>& loop, int V, int operands,
                                   void* const* address, const size_t* element_sizes) {
  const int inner = loop.ndim - 1;
  if (loop.strides[inner][0] != 1 || (inner > 0 && loop.sizes[inner] % V != 0)) return false;
  for (int k = 0; k < operands; ++k) {
    if (loop.strides[inner][k] == 0) continue;
    if (loop.strides[inner][k] != 1) return false;
    const size_t bytes = static_cast<size_t>(V) * element_sizes[k];
    if (reinterpret_cast<uintptr_t>(address[k]) % bytes != 0) return false;
    for (int d = 0; d < inner; ++d)
      if (loop.strides[d][k] % V != 0) return false;
  }
  return true;
}

}  // namespace elementwise_block

/// Calls run(body) with the body that does a loop that fits().
template <class Y, class... X, class F, class Run, int N>
void run_elementwise(const F& f, const elementwise::LoopNest<N>& loop,
                     void* const (&operands)[1 + sizeof...(X)], const Run& run) {
  constexpr auto V = static_cast<int>(16 / std::max({sizeof(Y), sizeof(X)...}));
  constexpr size_t element_sizes[] = {sizeof(Y), sizeof(X)...};
  if (elementwise_block::has_vectors(loop, V, 1 + sizeof...(X), operands, element_sizes))
    run(Elementwise<F, V, Y, X...>(f, loop, operands));
  else
    run(Elementwise<F, 1, Y, X...>(f, loop, operands));
}

/// y = f(x...), x broadcast to y's sizes: calls run(body) for the bodies that do it, of which there is more
/// than one only where a tensor reaches `limit` elements. A function of nothing is given y for x.
template <class Y, class... X, class F, class Run, int N>
void run_elementwise(const F& f, const TensorArg& y, const TensorArg* const (&x)[N], const Run& run,
                     int64_t limit = kMaxOffset) {
  constexpr int kOperands = 1 + sizeof...(X);
  static_assert(N == std::max(1, kOperands - 1));
  if (y.numel() == 0) return;
  for_each_part(elementwise::make_loop<N>(y, x), limit, [&](const auto& loop, const int64_t* start) {
    constexpr int64_t element_sizes[] = {sizeof(Y), sizeof(X)...};
    void* operands[kOperands];
    for (int k = 0; k < kOperands; ++k)
      operands[k] = (k == 0 ? y : *x[k - 1]).template data<char>() + start[k] * element_sizes[k];
    run_elementwise<Y, X...>(f, loop, operands, run);
  });
}

}  // namespace gradus::kernels
