#include <gradus/backends/cuda/kernel.cuh>
#include <kernels/cumsum.cuh>
#include <kernels/cumsum_block.cuh>

namespace gradus {
namespace cuda {

template <>
struct Launcher<CumSumKernel> {
  template <class T>
  static void run(const CumSumArgs& a, const Stream& stream) {
    if (a.x.numel() == 0) return;
    const kernels::CumSumTask<T> task = task_of<T>(a);
    if (task.count >= 1024 && (task.x_step > 1 || task.length <= 32))
      return cuda::run(kernels::CumSumColumns<T>{task}, stream);
    scan_rows(task, stream);
  }

 private:
  template <class T>
  static kernels::CumSumTask<T> task_of(const CumSumArgs& a) {
    kernels::CumSumTask<T> task{};
    task.x = a.x.data<T>(), task.y = a.y.data<typename kernels::CumSumTask<T>::Y>();
    task.length = a.x.sizes[a.dim], task.count = a.x.numel() / task.length;
    task.x_step = a.x.strides[a.dim], task.y_step = a.y.strides[a.dim];
    task.reverse = a.reverse;
    for (int d = 0; d < a.x.dim(); ++d)
      if (d != a.dim && a.x.sizes[d] != 1) task.rows.push_back(a.x.sizes[d], a.x.strides[d], a.y.strides[d]);
    if (task.rows.count == 0) task.rows.push_back(1, 0, 0);
    return task;
  }

  // Few long rows are cut, so that there are blocks enough.
  template <class T>
  static void scan_rows(const kernels::CumSumTask<T>& task, const Stream& stream) {
    using C = typename kernels::CumSumTask<T>::C;
    constexpr int64_t kTile = kBlockSize * kernels::CumSumRows<T>::kEach, kBlocks = 512;
    const int64_t tiles = (task.length + kTile - 1) / kTile;
    const int64_t wanted = std::max<int64_t>(1, std::min(tiles / 4, kBlocks / task.count));
    const int64_t part_length = (tiles + wanted - 1) / wanted * kTile;
    const int64_t parts = (task.length + part_length - 1) / part_length;
    if (parts == 1) return cuda::run(kernels::CumSumRows<T>{task, nullptr, 1, part_length}, stream);
    const Workspace totals(static_cast<size_t>(task.count * parts) * sizeof(C), stream);
    cuda::run(kernels::CumSumTotals<T>{task, totals.data<C>(), parts, part_length}, stream);
    cuda::run(kernels::CumSumRows<T>{task, totals.data<C>(), parts, part_length}, stream);
  }
};

}  // namespace cuda

GRADUS_CUDA_KERNEL(CumSumArgs, kAllTypes, CumSumKernel);

}  // namespace gradus
