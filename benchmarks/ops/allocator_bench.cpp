// What a pair of allocate and free costs once the cache is warm, beside malloc's.
#include <benchmark/benchmark.h>
#include <gradus/runtime/caching_allocator.h>

#include <cstdlib>

namespace {

using gradus::Stream;
using namespace gradus::runtime;

void Cached(benchmark::State& state) {
  const auto bytes = static_cast<size_t>(state.range(0));
  free_memory(allocate_memory(bytes, Stream{}));
  for (auto _ : state) {
    const Allocation a = allocate_memory(bytes, Stream{});
    benchmark::DoNotOptimize(a.data);
    free_memory(a);
  }
}
BENCHMARK(Cached)->Arg(64)->Arg(4096)->Arg(1 << 20)->Arg(25 << 20)->ThreadRange(1, 2);

void Malloc(benchmark::State& state) {
  const auto bytes = static_cast<size_t>(state.range(0));
  for (auto _ : state) {
    void* data = std::malloc(bytes);
    benchmark::DoNotOptimize(data);
    std::free(data);
  }
}
BENCHMARK(Malloc)->Arg(64)->Arg(4096)->Arg(1 << 20)->Arg(25 << 20)->ThreadRange(1, 2);

// As a training step does: many blocks of mixed sizes, freed in another order.
void CachedMixed(benchmark::State& state) {
  constexpr int kBlocks = 64;
  Allocation blocks[kBlocks];
  for (auto _ : state) {
    for (int i = 0; i < kBlocks; ++i) blocks[i] = allocate_memory(size_t{1} << (6 + i * 7 % 15), Stream{});
    for (int i = 0; i < kBlocks; ++i) free_memory(blocks[i * 37 % kBlocks]);
  }
  state.SetItemsProcessed(state.iterations() * kBlocks);
}
BENCHMARK(CachedMixed);

}  // namespace
