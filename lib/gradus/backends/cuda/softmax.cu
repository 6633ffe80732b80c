#include <gradus/backends/cuda/rows.cuh>
#include <kernels/softmax.cuh>
#include <kernels/softmax_block.cuh>

namespace gradus {
namespace cuda {

// The rows of a contiguous [outer, n, inner]; none if it is empty.
static kernels::Rows rows_of(const TensorArg& x, int64_t n, int64_t inner) {
  return {x.numel() == 0 ? 0 : x.numel() / n, n, inner};
}

template <bool Log>
struct Launcher<SoftmaxKernel<Log>> {
  template <class T>
  static void run(const SoftmaxArgs& a, const Stream& stream) {
    const kernels::Rows rows = rows_of(a.x, a.n, a.inner);
    run_rows(kernels::SoftmaxForwardBody<T, Log>{a.x.data<T>(), a.y.data<T>(), rows, softmax_teams(rows)},
             a.n, stream);
  }
};
template <bool Log>
struct Launcher<SoftmaxBackwardKernel<Log>> {
  template <class T>
  static void run(const SoftmaxBackwardArgs& a, const Stream& stream) {
    const kernels::Rows rows = rows_of(a.y, a.n, a.inner);
    run_rows(kernels::SoftmaxBackwardBody<T, Log>{a.y.data<T>(), a.dy.data<T>(), a.dx.data<T>(), rows,
                                                  softmax_teams(rows)},
             a.n, stream);
  }
};

}  // namespace cuda

GRADUS_CUDA_KERNEL(SoftmaxArgs, kFloatingTypes, SoftmaxKernel<false>);
GRADUS_CUDA_KERNEL(SoftmaxArgs, kFloatingTypes, SoftmaxKernel<true>);
GRADUS_CUDA_KERNEL(SoftmaxBackwardArgs, kFloatingTypes, SoftmaxBackwardKernel<false>);
GRADUS_CUDA_KERNEL(SoftmaxBackwardArgs, kFloatingTypes, SoftmaxBackwardKernel<true>);

}  // namespace gradus
