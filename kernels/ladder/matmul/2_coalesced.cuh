// Step 2: the threads of a warp lie along a row of C. One line differs from step 1.
//
// Now a warp reads one element of A, which all its threads share, and 32 neighbours of B: one transaction
// each, and one to write C.
//
// What limits it: each multiplication still fetches both its numbers from global memory or its caches, where
// a block's threads read the same rows of A and columns of B again and again. Step 3 fetches them once a
// block.
#pragma once
#include <kernels/ladder/matmul/product.cuh>

namespace gradus::kernels::ladder {

struct Coalesced {
  static constexpr const char* kName = "matmul step 2, coalesced";
  static constexpr int kBlockSize = 256;
  Product<float> p;

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int block_size) const { return blocks_for(p.m * p.n, block_size); }
  size_t shared_bytes(int) const { return 0; }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    if (element(block) >= p.m * p.n) return;
    const int64_t i = element(block) / p.n, j = element(block) % p.n;
    float sum = 0;
    for (int64_t l = 0; l < p.k; ++l) sum = std::fma(*p.left().at(i, l), *p.right().at(l, j), sum);
    *p.result().at(i, j) = sum;
  }
};

}  // namespace gradus::kernels::ladder

GRADUS_KERNEL(gradus::kernels::ladder::Coalesced);
