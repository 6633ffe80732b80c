#include "kernels/softmax.cuh"

#include <gradus/ops/arithmetic.h>
#include <gradus/ops/autocast.h>
#include <gradus/ops/common.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/softmax.h>

namespace gradus {
namespace {

constexpr auto kSoftmax =
    KernelTable<SoftmaxArgs>("softmax").everywhere<SoftmaxKernel<false>, kFloatingTypes>();
constexpr auto kLogSoftmax =
    KernelTable<SoftmaxArgs>("log_softmax").everywhere<SoftmaxKernel<true>, kFloatingTypes>();
constexpr auto kSoftmaxBackward = KernelTable<SoftmaxBackwardArgs>("softmax_backward")
                                      .everywhere<SoftmaxBackwardKernel<false>, kFloatingTypes>();
constexpr auto kLogSoftmaxBackward = KernelTable<SoftmaxBackwardArgs>("log_softmax_backward")
                                         .everywhere<SoftmaxBackwardKernel<true>, kFloatingTypes>();

// The product of the sizes after dim.
int64_t inner_size(const Shape& sizes, int dim) {
  int64_t inner = 1;
  for (int d = dim + 1; d < sizes.size(); ++d) inner *= sizes[d];
  return inner;
}
int64_t length(const Shape& sizes, int dim) { return sizes.empty() ? 1 : sizes[dim]; }

// One launch; with create_graph the same formula made of operations.
Tensor softmax_backward(const Tensor& grad, const Tensor& y, int dim, bool log) {
  if (GradMode::is_enabled()) {
    if (log) return grad - y.exp() * sum(grad, dim, true);
    return y * (grad - sum(grad * y, dim, true));
  }
  const Tensor dy = grad.contiguous();
  Tensor dx = empty(y.sizes(), y.dtype(), y.device());
  launch(
      log ? kLogSoftmaxBackward : kSoftmaxBackward, y.dtype(), ops::stream_of(y),
      SoftmaxBackwardArgs{y.arg(), dy.arg(), dx.arg(), length(y.sizes(), dim), inner_size(y.sizes(), dim)});
  return dx;
}

struct SoftmaxBackward : Node {
  SoftmaxBackward(int along, bool with_log) : dim(along), log(with_log) {}
  const char* name() const override { return log ? "LogSoftmaxBackward" : "SoftmaxBackward"; }
  TensorList backward(const TensorList& g) override { return {softmax_backward(g[0], saved(0), dim, log)}; }
  int dim;
  bool log;
};

Tensor softmax(const Tensor& x, int64_t dim, bool log) {
  const auto& table = log ? kLogSoftmax : kSoftmax;
  const int d = ops::wrap_dim(dim, x, table.name());
  const Tensor in = x.contiguous();
  Tensor y = empty(x.sizes(), x.dtype(), x.device());
  launch(table, x.dtype(), ops::stream_of(y),
         SoftmaxArgs{in.arg(), y.arg(), length(x.sizes(), d), inner_size(x.sizes(), d)});
  if (wants_grad(x)) record<SoftmaxBackward>(y, x, d, log).save(y);
  return y;
}

}  // namespace

Tensor softmax(const Tensor& x, int64_t dim) {
  if (const auto cast = ops::autocast(ops::kFloat32OnGpu, x)) return softmax(cast(x), dim);
  return softmax(x, dim, false);
}
Tensor log_softmax(const Tensor& x, int64_t dim) {
  if (const auto cast = ops::autocast(ops::kFloat32OnGpu, x)) return log_softmax(cast(x), dim);
  return softmax(x, dim, true);
}

Tensor Tensor::softmax(int64_t dim) const { return gradus::softmax(*this, dim); }
Tensor Tensor::log_softmax(int64_t dim) const { return gradus::log_softmax(*this, dim); }

}  // namespace gradus
