// A cooperative operation exists twice: as a body for blocks of threads, and as the loops of the CPU. They
// must agree at any shape.
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/cumsum.h>
#include <gradus/ops/extremum.h>
#include <gradus/ops/factories.h>
#include <gradus/ops/layer_norm.h>
#include <gradus/ops/loss.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/softmax.h>

#include <kernels/cross_entropy_block.cuh>
#include <kernels/cumsum_block.cuh>
#include <kernels/layer_norm_block.cuh>
#include <kernels/reduce_block.cuh>
#include <kernels/softmax_block.cuh>

#include "kernels/kernel_testing.h"

namespace gradus::kernels {
namespace {

constexpr double kTolerance = 1e-5;

// [outer, length, inner], other sizes for each test case.
struct Case {
  int64_t outer, length, inner;
  Rows rows() const { return {outer * inner, length, inner}; }
  Shape sizes() const { return {outer, length, inner}; }
  Shape row_sizes() const { return {outer, inner}; }
  std::vector<float> data(uint64_t salt = 0) const { return random_vector(sizes().numel(), salt); }
  Tensor of(const std::vector<float>& v) const { return tensor(v, sizes()); }
};
Case random_case(uint64_t n) {
  auto size = [&](uint64_t k, int64_t most) {
    return 1 + static_cast<int64_t>(PhiloxStream{7, n}.uniform<double>(k) * static_cast<double>(most));
  };
  return {size(0, 9), size(1, 90), n % 2 == 0 ? 1 : size(2, 40)};
}

// On a thread for each of 32 where that takes few blocks, else serially.
template <class Body>
void run_body(const Body& body, uint64_t n) {
  n % 3 == 0 && body.groups(32) <= 12 ? run_threads(body, 32) : run_serial(body);
}

void expect_same(const std::vector<float>& body, const Tensor& op) {
  expect_close(body, op.to_vector<double>(), kTolerance);
}

class CpuLoops : public ::testing::TestWithParam<uint64_t> {
 protected:
  uint64_t n = GetParam();
  Case c = random_case(n);
  std::vector<float> x = c.data(), dy = c.data(1);
  std::vector<float> y = std::vector<float>(x.size()), dx = std::vector<float>(x.size());
  Tensor leaf = c.of(x).requires_grad_();
};
INSTANTIATE_TEST_SUITE_P(random_shapes, CpuLoops, ::testing::Range<uint64_t>(0, 12));

TEST_P(CpuLoops, softmax) {
  const Tensor op = softmax(leaf, 1);
  op.backward(c.of(dy));
  run_body(SoftmaxForward<float>{x.data(), y.data(), c.rows()}, n);
  run_body(SoftmaxBackward<float>{y.data(), dy.data(), dx.data(), c.rows()}, n);
  expect_same(y, op);
  expect_same(dx, leaf.grad());
}

TEST_P(CpuLoops, log_softmax) {
  const Tensor op = log_softmax(leaf, 1);
  op.backward(c.of(dy));
  run_body(LogSoftmaxForward<float>{x.data(), y.data(), c.rows()}, n);
  run_body(LogSoftmaxBackward<float>{y.data(), dy.data(), dx.data(), c.rows()}, n);
  expect_same(y, op);
  expect_same(dx, leaf.grad());
}

TEST_P(CpuLoops, reductions) {
  const Tensor t = c.of(x);
  std::vector<float> r(static_cast<size_t>(c.rows().count));
  run_body(RowSum<float>{x.data(), r.data(), c.rows()}, n);
  expect_same(r, sum(t, 1));
  run_body(RowMean<float>{x.data(), r.data(), c.rows()}, n);
  expect_same(r, mean(t, 1));
  run_body(RowMax<float>{x.data(), r.data(), c.rows()}, n);
  EXPECT_EQ(r, amax(t, 1).to_vector<float>());
  run_body(RowMin<float>{x.data(), r.data(), c.rows()}, n);
  EXPECT_EQ(r, amin(t, 1).to_vector<float>());
}

TEST_P(CpuLoops, argmax_with_ties) {
  for (float& v : x) v = std::round(2 * v);
  std::vector<float> value(static_cast<size_t>(c.rows().count));
  std::vector<int64_t> index(value.size());
  run_body(RowArgMax<float>{x.data(), value.data(), index.data(), c.rows()}, n);
  const auto [values, indices] = max(c.of(x), 1);
  EXPECT_EQ(value, values.to_vector<float>());
  EXPECT_EQ(index, indices.to_vector<int64_t>());
  run_body(RowArgMin<float>{x.data(), nullptr, index.data(), c.rows()}, n);
  EXPECT_EQ(index, argmin(c.of(x), 1).to_vector<int64_t>());
}

TEST_P(CpuLoops, cumsum) {
  run_body(CumSum<float>{x.data(), y.data(), c.rows()}, n);
  expect_same(y, gradus::cumsum(c.of(x), 1));
}

TEST_P(CpuLoops, layer_norm) {
  const int64_t rows = c.outer * c.length, cols = c.inner + 3;
  x = random_vector(rows * cols), dy = random_vector(rows * cols, 1);
  y.resize(x.size()), dx.resize(x.size());
  const auto weight = random_vector(cols, 2), bias = random_vector(cols, 3);
  leaf = tensor(x, {rows, cols}).requires_grad_();
  Tensor w = tensor(weight).requires_grad_(), b = tensor(bias).requires_grad_();
  const Tensor op = gradus::layer_norm(leaf, {cols}, w, b);
  op.backward(tensor(dy, {rows, cols}));
  std::vector<float> mean(static_cast<size_t>(rows)), rstd(mean.size());
  std::vector<float> dw(static_cast<size_t>(cols)), db(dw.size());
  run_body(LayerNormForward<float>{x.data(), weight.data(), bias.data(), y.data(), mean.data(), rstd.data(),
                                   rows, cols, 1e-5},
           n);
  run_body(LayerNormBackward<float>{x.data(), weight.data(), dy.data(), mean.data(), rstd.data(), dx.data(),
                                    rows, cols},
           n);
  run_body(LayerNormWeightBackward<float>{x.data(), dy.data(), mean.data(), rstd.data(), dw.data(), db.data(),
                                          rows, cols},
           n);
  expect_same(y, op);
  expect_same(dx, leaf.grad());
  expect_same(dw, w.grad());
  expect_same(db, b.grad());
}

TEST_P(CpuLoops, cross_entropy) {
  const int64_t samples = c.rows().count;
  const double smoothing = n % 4 == 0 ? 0 : 0.1;
  const bool mean = n % 2 == 0;
  std::vector<int64_t> target(static_cast<size_t>(samples));
  for (size_t i = 0; i < target.size(); ++i)
    target[i] = i % 5 == 3 ? -100 : static_cast<int64_t>(i * 7) % c.length;
  auto weight = random_vector(c.length, 2);
  for (float& w : weight) w = 0.5f + std::abs(w);
  const Tensor op =
      gradus::cross_entropy(leaf, tensor(target, c.row_sizes()),
                            {.weight = tensor(weight),
                             .reduction = mean ? gradus::Reduction::mean : gradus::Reduction::sum,
                             .label_smoothing = smoothing});
  op.backward();

  const CrossEntropyTask<float> task{x.data(), target.data(), weight.data(), c.rows(), smoothing, -100};
  std::vector<float> loss(target.size()), sample_weight(loss.size()), stats(2 * loss.size());
  std::vector<float> result(1), total_weight(1);
  const float one = 1;
  run_body(CrossEntropyForward<float>{task, loss.data(), sample_weight.data(), stats.data()}, n);
  run_body(CrossEntropyReduce<float>{loss.data(), sample_weight.data(), result.data(), total_weight.data(),
                                     samples, mean},
           n);
  run_body(CrossEntropyBackward<float>{task, stats.data(), &one, 0, mean ? total_weight.data() : nullptr,
                                       dx.data()},
           n);
  expect_same(result, op);
  expect_same(dx, leaf.grad());
}

}  // namespace
}  // namespace gradus::kernels
