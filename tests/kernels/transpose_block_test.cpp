#include <kernels/transpose_block.cuh>
#include <numeric>

#include "kernels/copy.cuh"
#include "kernels/kernel_testing.h"

namespace gradus::kernels {
namespace {

template <class W>
struct TransposeBlock : ::testing::Test {};
using Words = ::testing::Types<uint8_t, uint16_t, uint32_t, uint64_t>;
TYPED_TEST_SUITE(TransposeBlock, Words);

// A copy of x to y of the same sizes, where both have these strides.
struct Layout {
  Shape sizes, y, x;
};

TYPED_TEST(TransposeBlock, EveryElementIsMovedOnEveryBlock) {
  using W = TypeParam;
  const Layout layouts[] = {
      {{33, 5}, {5, 1}, {1, 33}},
      {{70, 3}, {3, 1}, {1, 70}},
      {{65, 130}, {130, 1}, {1, 65}},
      {{2, 19, 37}, {703, 37, 1}, {703, 1, 19}},
      {{2, 17, 3, 40}, {2040, 1, 680, 17}, {2040, 120, 40, 1}},  // NCHW to NHWC
      {{2, 17, 3, 40}, {2040, 120, 40, 1}, {2040, 1, 680, 17}},
      {{21, 18}, {40, 1}, {1, 30}},  // parts of larger matrices
  };
  for (const Layout& l : layouts) {
    TensorArg y, x;
    y.sizes = x.sizes = l.sizes, y.strides = l.y, x.strides = l.x;
    const auto loop = elementwise::make_loop<1>(y, {&x});
    const int dim = copy::transposed_dim(loop);
    ASSERT_GE(dim, 0);
    std::vector<W> from(9000), to(9000), want(9000);
    std::iota(from.begin(), from.end(), W{1});
    y.dtype = x.dtype = kUInt8;  // extent() in elements
    ASSERT_LE(std::max(y.extent(), x.extent()), 9000u);
    for (int64_t i = 0; i < l.sizes.numel(); ++i) {
      int64_t rest = i, at_y = 0, at_x = 0;
      for (int d = l.sizes.size() - 1; d >= 0; rest /= l.sizes[d], --d)
        at_y += rest % l.sizes[d] * l.y[d], at_x += rest % l.sizes[d] * l.x[d];
      want[static_cast<size_t>(at_y)] = from[static_cast<size_t>(at_x)];
    }
    on_all_blocks<Transpose<W>>([&](Runner run) {
      std::fill(to.begin(), to.end(), W{0});
      run(Transpose<W>(loop, dim, to.data(), from.data()));
      EXPECT_EQ(to, want) << l.sizes;
    });
  }
}

}  // namespace
}  // namespace gradus::kernels
