#include <kernels/embedding_block.cuh>

#include "kernels/kernel_testing.h"

namespace gradus::kernels {
namespace {

template <class T>
struct EmbeddingKernel : ::testing::Test {};
TYPED_TEST_SUITE(EmbeddingKernel, FloatingTypes);

TYPED_TEST(EmbeddingKernel, RowsAndTheirGradients) {
  using T = TypeParam;
  const int64_t vocabulary = 6, width = 13;
  const std::vector<int64_t> index{5, 0, 2, 0, 5, 3, 0};
  const auto count = static_cast<int64_t>(index.size());
  const auto table = random_vector<T>(vocabulary * width), dy = random_vector<T>(count * width, 1);
  std::vector<double> y, dtable(table.size());
  for (size_t i = 0; i < index.size(); ++i) {
    for (int64_t j = 0; j < width; ++j) {
      const auto at = static_cast<size_t>(index[i] * width + j);
      y.push_back(static_cast<double>(table[at]));
      if (index[i] != 3)
        dtable[at] += static_cast<double>(dy[i * static_cast<size_t>(width) + static_cast<size_t>(j)]);
    }
  }
  on_all_blocks<EmbeddingForward<T>>([&](Runner run) {
    std::vector<T> got(y.size());
    std::vector<ComputeType<T>> dgot(table.size());
    run(EmbeddingForward<T>{table.data(), index.data(), got.data(), vocabulary, width, count});
    expect_close(got, y, 0);
    run(EmbeddingBackward<T>{dy.data(), index.data(), dgot.data(), vocabulary, width, count, 3});
    expect_close(dgot, dtable, tolerance_of<ComputeType<T>>());
  });
}

TEST(EmbeddingEdges, AnIndexOutOfRangeReadsNothing) {
  const std::vector<float> table{1, 2};
  const std::vector<int64_t> index{1, -1, int64_t{1} << 60};
  std::vector<float> y(3), dtable(2);
  run_serial(EmbeddingForward<float>{table.data(), index.data(), y.data(), 2, 1, 3});
  EXPECT_EQ(y[0], 2.0f);
  EXPECT_TRUE(std::isnan(y[1]) && std::isnan(y[2]));
  run_serial(EmbeddingBackward<float>{table.data(), index.data(), dtable.data(), 2, 1, 1, -1});
  EXPECT_EQ(dtable, (std::vector<float>{0, 1}));
}

}  // namespace
}  // namespace gradus::kernels
