// Compiled for sm_90a alone.
#include <kernels/ladder/matmul/9_warpgroup.cuh>

#include "ops/matmul_ladder_launch.h"

namespace ladder_bench {
namespace {

[[maybe_unused]] const bool added = add<gradus::kernels::ladder::Warpgroups<>>("9_warpgroup", 90, true);

}  // namespace
}  // namespace ladder_bench
