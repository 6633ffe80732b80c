// Neighbouring elements that move as one word: a thread of a GPU loads and stores up to 16 bytes at a time.
#pragma once
#include <gradus/base/macros.h>

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <kernels/blocks/block.cuh>
#include <type_traits>

namespace gradus::kernels {

/// N elements, read and written at addresses that are a multiple of their size.
template <class T, int N>
struct alignas(sizeof(T) * N) Pack {
  T v[N];
};

/// Elements of 16 bytes.
template <class T>
inline constexpr int kPackSize = static_cast<int>(16 / sizeof(T));

template <int N, class T>
GRADUS_HD Pack<T, N> load_pack(const T* from) {
  return *reinterpret_cast<const Pack<T, N>*>(from);
}
template <int N, class T>
GRADUS_HD void store_pack(T* to, const Pack<T, N>& pack) {
  *reinterpret_cast<Pack<T, N>*>(to) = pack;
}

/// Whether packs of 16 bytes can start at each of these addresses.
inline bool all_aligned(std::initializer_list<const void*> addresses) {
  for (const void* address : addresses)
    if (reinterpret_cast<uintptr_t>(address) % 16 != 0) return false;
  return true;
}

/// Shares the elements begin … end - 1, begin a multiple of V, among the threads of a block: calls
/// f(std::integral_constant<int, W>, i) for the W elements from i on, W = V where `packed` and 1 else.
template <int V, Block B, class F>
GRADUS_HD void for_each_pack(const B& block, int64_t begin, int64_t end, bool packed, const F& f) {
  if (packed) {
    const int64_t whole = end - (end - begin) % V;
    for (int64_t i = begin + static_cast<int64_t>(block.thread_rank()) * V; i < whole;
         i += static_cast<int64_t>(block.size()) * V)
      f(std::integral_constant<int, V>{}, i);
    begin = whole;
  }
  for (int64_t i = begin + block.thread_rank(); i < end; i += block.size())
    f(std::integral_constant<int, 1>{}, i);
}

}  // namespace gradus::kernels
