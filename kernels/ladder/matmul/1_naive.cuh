// Step 1: a thread for each element of C.
//
// What limits it: the order of the threads. Those of a warp lie along a column of C, so the 32 elements of A
// that they read together are K apart, and the 32 of C that they write are N apart: 32 transactions where one
// would do. Step 2 numbers the threads along the rows.
#pragma once
#include <kernels/ladder/matmul/product.cuh>

namespace gradus::kernels::ladder {

struct Naive {
  static constexpr const char* kName = "matmul step 1, naive";
  static constexpr int kBlockSize = 256;
  Product<float> p;

  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int block_size) const { return blocks_for(p.m * p.n, block_size); }
  size_t shared_bytes(int) const { return 0; }

  template <Block B>
  GRADUS_HD void operator()(B& block) const {
    if (element(block) >= p.m * p.n) return;
    const int64_t i = element(block) % p.m, j = element(block) / p.m;
    float sum = 0;
    for (int64_t l = 0; l < p.k; ++l) sum = std::fma(*p.left().at(i, l), *p.right().at(l, j), sum);
    *p.result().at(i, j) = sum;
  }
};

}  // namespace gradus::kernels::ladder

GRADUS_KERNEL(gradus::kernels::ladder::Naive);
