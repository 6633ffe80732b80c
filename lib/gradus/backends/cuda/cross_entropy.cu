#include <gradus/backends/cuda/rows.cuh>
#include <kernels/cross_entropy.cuh>
#include <kernels/cross_entropy_block.cuh>

namespace gradus {
namespace cuda {
namespace {

template <class T, class Args>
kernels::CrossEntropyTask<T> task_of(const Args& a) {
  return {a.logits.template data<T>(),
          a.target.template data<int64_t>(),
          optional<T>(a.weight),
          a.logits.sizes[0],
          a.logits.sizes[1],
          a.label_smoothing,
          a.ignore_index,
          a.log_probabilities};
}

}  // namespace

template <>
struct Launcher<CrossEntropyKernel> {
  template <class T>
  static void run(const CrossEntropyArgs& a, const Stream& stream) {
    using C = ComputeType<T>;
    const kernels::CrossEntropyTask<T> task = task_of<T>(a);
    const bool one_element = a.log_probabilities && a.label_smoothing == 0;  // is read of each row
    const kernels::Teams teams = one_element ? kernels::Teams{1} : kernels::Teams::for_length(task.classes);
    run_rows(kernels::CrossEntropyForward<T>{task, a.losses.data<C>(), a.each ? a.result.data<T>() : nullptr,
                                             a.stats.data<C>(), teams,
                                             fault_site(stream.device, a.name, &describe_target)},
             task.classes, stream);
    reduce_losses(a, task, stream);
  }

 private:
  // A block is enough for most batches; the pixels of a batch of images are cut into parts.
  template <class T>
  static void reduce_losses(const CrossEntropyArgs& a, const kernels::CrossEntropyTask<T>& task,
                            const Stream& stream) {
    using C = ComputeType<T>;
    constexpr int64_t kPart = 8192, kMostParts = 512;
    const int64_t n = task.samples;
    kernels::CrossEntropyReduce<T> last{task,
                                        a.losses.data<C>(),
                                        nullptr,
                                        nullptr,
                                        a.each ? nullptr : a.result.data<T>(),
                                        a.total_weight.data<C>(),
                                        n,
                                        std::max<int64_t>(1, n),
                                        a.mean};
    const int64_t part_length = std::max(kPart, (n + kMostParts - 1) / kMostParts);
    const int64_t parts = (n + part_length - 1) / part_length;
    if (parts <= 1) return cuda::run(last, stream, 2 * kBlockSize);
    const Workspace sums(static_cast<size_t>(parts) * sizeof(kernels::LossAndWeight<C>), stream);
    kernels::CrossEntropyReduce<T> first = last;
    first.parts = sums.data<kernels::LossAndWeight<C>>(), first.part_length = part_length;
    cuda::run(first, stream);
    last.from = first.parts, last.count = last.part_length = parts;
    cuda::run(last, stream);
  }
};

template <>
struct Launcher<CrossEntropyBackwardKernel> {
  template <class T>
  static void run(const CrossEntropyBackwardArgs& a, const Stream& stream) {
    using C = ComputeType<T>;
    const kernels::CrossEntropyTask<T> task = task_of<T>(a);
    if (task.classes == 0) return;
    cuda::run(
        kernels::CrossEntropyBackward<T>{task, a.stats.data<C>(), a.dy.data<T>(), a.each ? 1 : 0,
                                         a.mean ? a.total_weight.data<C>() : nullptr, a.d_logits.data<T>(),
                                         kernels::Teams::for_length(task.classes)},
        stream);
  }
};

}  // namespace cuda

GRADUS_CUDA_KERNEL(CrossEntropyArgs, kFloatingTypes, CrossEntropyKernel);
GRADUS_CUDA_KERNEL(CrossEntropyBackwardArgs, kFloatingTypes, CrossEntropyBackwardKernel);

}  // namespace gradus
