// Grid, block and shared memory of launches, as pure functions: no GPU is needed to know them.
#include <gtest/gtest.h>
#include <support/expect_error.h>

#include "kernels/blocks/launch.cuh"

namespace gradus::kernels {
namespace {

// A thread for each element, and some shared memory for each thread.
struct Flat {
  static constexpr const char* kName = "flat";
  int64_t n;
  static constexpr bool supports(int block_size) { return any_size(block_size); }
  int64_t groups(int block_size) const { return blocks_for(n, block_size); }
  size_t shared_bytes(int block_size) const { return shared_size<float>(block_size); }
};

struct Shuffling : Flat {
  static constexpr bool supports(int block_size) { return whole_warps(block_size); }
};

TEST(LaunchShape, has_a_block_for_each_full_or_partial_group) {
  const std::pair<int64_t, unsigned> expected[] = {
      {0, 0}, {1, 1}, {31, 1}, {33, 2}, {32 * 7, 7}, {(int64_t{1} << 31) + 1, (1u << 26) + 1}};
  for (const auto& [n, grid] : expected) {
    const LaunchShape shape = launch_shape(Flat{n}, 32);
    EXPECT_EQ(shape.grid, grid) << n;
    EXPECT_EQ(shape.block, 32);
    EXPECT_EQ(shape.shared, 128u);
  }
}

TEST(LaunchShape, never_exceeds_cudas_grid) {
  const int64_t most = 0x7fffffff;  // CUDA programming guide, "Technical Specifications": 2^31 - 1
  EXPECT_EQ(launch_shape(Flat{most}, 1).grid, 0x7fffffffu);
  EXPECT_EQ(launch_shape(Flat{most + 1}, 1).grid, 0x7fffffffu);
  EXPECT_EQ(launch_shape(Flat{(int64_t{1} << 40) + 1}, 1).grid, 0x7fffffffu);
}

TEST(LaunchShape, refuses_blocks_that_the_body_cannot_run_with) {
  EXPECT_GRADUS_ERROR(launch_shape(Flat{1}, 1025), "E-BLOCK-SIZE", "1025");
  EXPECT_GRADUS_ERROR(launch_shape(Flat{1}, 0), "E-BLOCK-SIZE", "flat");
  EXPECT_GRADUS_ERROR(launch_shape(Shuffling{{1}}, 48), "E-BLOCK-SIZE", "use a block of 32 or 64");
}

TEST(LaunchShape, shared_memory_is_cut_in_pieces_that_any_type_may_follow) {
  EXPECT_EQ(launch_shape(Flat{1}, 1).shared, 16u);
  EXPECT_EQ(launch_shape(Flat{1}, 5).shared, 32u);
}

}  // namespace
}  // namespace gradus::kernels
