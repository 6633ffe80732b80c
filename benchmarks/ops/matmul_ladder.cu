#include <kernels/ladder/matmul/1_naive.cuh>
#include <kernels/ladder/matmul/2_coalesced.cuh>
#include <kernels/ladder/matmul/3_shared_tiles.cuh>
#include <kernels/ladder/matmul/4_thread_tiles.cuh>
#include <kernels/ladder/matmul/5_2d_register_tiles.cuh>
#include <kernels/ladder/matmul/6_vectorized.cuh>
#include <kernels/ladder/matmul/7_double_buffered_warp_tiles.cuh>
#include <kernels/ladder/matmul/8_tensor_cores.cuh>

#include "ops/matmul_ladder_launch.h"

namespace ladder_bench {
namespace {

using namespace gradus::kernels::ladder;

[[maybe_unused]] const bool added[] = {
    add<Naive>("1_naive"),
    add<Coalesced>("2_coalesced"),
    add<SharedTiles<>>("3_shared_tiles"),
    add<ThreadTiles<>>("4_thread_tiles"),
    add<RegisterTiles<>>("5_2d_register_tiles"),
    add<Vectorized<>>("6_vectorized"),
    add<WarpTiles<>>("7_double_buffered_warp_tiles"),
    add<TensorCores<>>("8_tensor_cores", 80),
};

}  // namespace
}  // namespace ladder_bench
