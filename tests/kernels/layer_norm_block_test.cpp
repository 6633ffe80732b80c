#include <kernels/layer_norm_block.cuh>

#include "kernels/kernel_testing.h"

namespace gradus::kernels {
namespace {

template <class T>
struct LayerNormKernel : ::testing::Test {};
TYPED_TEST_SUITE(LayerNormKernel, FloatingTypes);

struct Result {
  std::vector<double> y, dx, dweight, dbias;
};

// The definition in double: dx from the full Jacobian, d normal_j / d x_i = rstd ([i = j] - 1/K - n_i n_j /
// K).
template <class T>
Result reference(const std::vector<T>& x, const std::vector<T>& w, const std::vector<T>& b,
                 const std::vector<T>& dy, size_t rows, size_t cols, double eps) {
  Result r{std::vector<double>(x.size()), std::vector<double>(x.size()), std::vector<double>(cols),
           std::vector<double>(cols)};
  for (size_t row = 0; row < rows; ++row) {
    auto at = [&](const std::vector<T>& v, size_t i) { return static_cast<double>(v[row * cols + i]); };
    double mean = 0, var = 0;
    for (size_t i = 0; i < cols; ++i) mean += at(x, i) / static_cast<double>(cols);
    for (size_t i = 0; i < cols; ++i)
      var += (at(x, i) - mean) * (at(x, i) - mean) / static_cast<double>(cols);
    const double rstd = 1 / std::sqrt(var + eps);
    auto normal = [&](size_t i) { return (at(x, i) - mean) * rstd; };
    for (size_t i = 0; i < cols; ++i) {
      r.y[row * cols + i] = normal(i) * static_cast<double>(w[i]) + static_cast<double>(b[i]);
      r.dweight[i] += at(dy, i) * normal(i);
      r.dbias[i] += at(dy, i);
      for (size_t j = 0; j < cols; ++j)
        r.dx[row * cols + i] += at(dy, j) * static_cast<double>(w[j]) * rstd *
                                ((i == j) - (1 + normal(i) * normal(j)) / static_cast<double>(cols));
    }
  }
  return r;
}

TYPED_TEST(LayerNormKernel, MatchesDouble) {
  using T = TypeParam;
  using C = ComputeType<T>;
  const int64_t rows = 3, cols = 71;
  const auto x = random_vector<T>(rows * cols), w = random_vector<T>(cols, 1), b = random_vector<T>(cols, 2),
             dy = random_vector<T>(rows * cols, 3);
  const Result want = reference(x, w, b, dy, rows, cols, 1e-5);
  on_all_blocks<LayerNormForward<T>>([&](Runner run) {
    std::vector<T> y(x.size()), dx(x.size()), dw(w.size()), db(w.size());
    std::vector<C> mean(rows), rstd(rows);
    for (const int lanes : {0, 2, 32}) {
      run(LayerNormForward<T>{
          x.data(), w.data(), b.data(), y.data(), mean.data(), rstd.data(), rows, cols, 1e-5, {lanes}});
      expect_close(y, want.y, 2 * tolerance_of<T>());
      run(LayerNormBackward<T>{
          x.data(), w.data(), dy.data(), mean.data(), rstd.data(), dx.data(), rows, cols, {lanes}});
      expect_close(dx, want.dx, 4 * tolerance_of<T>());
    }
    for (const int64_t part_rows : {2, 3}) {
      const int64_t parts = (rows + part_rows - 1) / part_rows;
      std::vector<C> sums(static_cast<size_t>(parts * 2 * cols));
      run(LayerNormWeightBackward<T>{x.data(), dy.data(), mean.data(), rstd.data(), sums.data(), rows, cols,
                                     part_rows});
      run(LayerNormWeightSum<T>{sums.data(), dw.data(), db.data(), cols, parts});
      expect_close(dw, want.dweight, 4 * tolerance_of<T>());
      expect_close(db, want.dbias, 4 * tolerance_of<T>());
    }
  });
}

TEST(LayerNormEdges, WithoutWeightAndWithALargeMean) {
  std::vector<float> x{10000, 10001, 10002, 10003};
  const std::vector<float> one(4, 1.0f), zero(4), dy{1, 0, 0, 0};
  const Result want = reference(x, one, zero, dy, 1, 4, 1e-5);
  on_all_blocks<LayerNormForward<float>>([&](Runner run) {
    std::vector<float> y(4), dx(4), mean(1), rstd(1);
    run(LayerNormForward<float>{
        x.data(), nullptr, nullptr, y.data(), mean.data(), rstd.data(), 1, 4, 1e-5, {4}});
    expect_close(y, want.y, 1e-6);
    EXPECT_EQ(mean[0], 10001.5f);
    run(LayerNormBackward<float>{
        x.data(), nullptr, dy.data(), mean.data(), rstd.data(), dx.data(), 1, 4, {4}});
    expect_close(dx, want.dx, 1e-6);
    const std::vector<float> sums(8);
    run(LayerNormWeightSum<float>{sums.data(), nullptr, nullptr, 4, 1});
  });
}

}  // namespace
}  // namespace gradus::kernels
