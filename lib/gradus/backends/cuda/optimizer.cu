#include <gradus/backends/cuda/kernel.cuh>
#include <kernels/optimizer_block.cuh>

namespace gradus {
namespace cuda {

static_assert(TensorListArg::kCapacity <= kernels::kMaxTensors);

template <>
struct Launcher<AdamKernel> {
  template <class T>
  static void run(const AdamArgs& a, const Stream& stream) {
    using C = ComputeType<T>;
    const Workspace updates(sizeof(AdamUpdate<C>) * kernels::kMaxTensors, stream);
    prepare(a, updates.data<AdamUpdate<C>>(), stream);
    kernels::AdamStep<T> body{};
    body.updates = updates.data<AdamUpdate<C>>();
    for (int i = 0; i < a.params.count; ++i) {
      body.items[i] = {a.params[i].data<T>(), a.grads[i].data<T>(), a.exp_avgs[i].data<T>(),
                       a.exp_avg_sqs[i].data<T>(),
                       kernels::all_aligned({a.params[i].address, a.grads[i].address, a.exp_avgs[i].address,
                                             a.exp_avg_sqs[i].address})};
      body.chunks.push_back(a.params[i].numel());
    }
    cuda::run(body, stream);
  }

 private:
  template <class C>
  static void prepare(const AdamArgs& a, AdamUpdate<C>* updates, const Stream& stream) {
    kernels::AdamPrepare<C> body{};
    for (int i = 0; i < a.params.count; ++i) body.steps[i] = a.steps[i].data<float>();
    body.count = a.params.count;
    body.lr = a.lr.data<double>();
    body.update.beta1 = a.beta1, body.update.beta2 = a.beta2;
    body.update.eps = static_cast<C>(a.eps);
    body.update.weight_decay = static_cast<C>(a.weight_decay);
    body.update.decoupled_weight_decay = a.decoupled_weight_decay;
    body.updates = updates;
    cuda::run(body, stream, kernels::kWarpSize);
  }
};

template <>
struct Launcher<SgdKernel> {
  template <class T>
  static void run(const SgdArgs& a, const Stream& stream) {
    using C = ComputeType<T>;
    kernels::SgdStep<T> body{};
    body.lr = a.lr.data<double>();
    body.update.momentum = static_cast<C>(a.momentum);
    body.update.dampening = static_cast<C>(a.dampening);
    body.update.weight_decay = static_cast<C>(a.weight_decay);
    body.update.nesterov = a.nesterov, body.update.first_step = a.first_step;
    for (int i = 0; i < a.params.count; ++i) {
      T* buffer = a.momentum != 0 ? a.buffers[i].data<T>() : nullptr;
      body.items[i] = {a.params[i].data<T>(), a.grads[i].data<T>(), buffer,
                       kernels::all_aligned({a.params[i].address, a.grads[i].address, buffer})};
      body.chunks.push_back(a.params[i].numel());
    }
    cuda::run(body, stream);
  }
};

}  // namespace cuda

GRADUS_CUDA_KERNEL(AdamArgs, kFloatingTypes, AdamKernel);
GRADUS_CUDA_KERNEL(SgdArgs, kFloatingTypes, SgdKernel);

}  // namespace gradus
