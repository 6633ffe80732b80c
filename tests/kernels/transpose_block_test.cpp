#include <kernels/transpose_block.cuh>

#include "kernels/kernel_testing.h"

namespace gradus::kernels {
namespace {

TEST(TransposeKernel, OddShapesOnEveryBlock) {
  struct Shape3 {
    int64_t batch, rows, cols;
  };
  for (const Shape3 s : {Shape3{1, 1, 1}, {2, 33, 5}, {1, 32, 64}, {1, 3, 70}}) {
    const auto x = random_vector<BFloat16>(s.batch * s.rows * s.cols);
    std::vector<double> want(x.size());
    for (int64_t b = 0; b < s.batch; ++b)
      for (int64_t i = 0; i < s.rows; ++i)
        for (int64_t j = 0; j < s.cols; ++j)
          want[static_cast<size_t>((b * s.cols + j) * s.rows + i)] =
              static_cast<double>(x[static_cast<size_t>((b * s.rows + i) * s.cols + j)]);
    on_all_blocks<Transpose<BFloat16>>([&](Runner run) {
      std::vector<BFloat16> y(x.size());
      run(Transpose<BFloat16>{x.data(), y.data(), s.batch, s.rows, s.cols});
      expect_close(y, want, 0);
    });
  }
}

}  // namespace
}  // namespace gradus::kernels
