#include <gradus/backends/cuda/kernel.cuh>
#include <kernels/unscale_block.cuh>

namespace gradus {
namespace cuda {

static_assert(TensorListArg::kCapacity <= kernels::kMaxTensors);

template <>
struct Launcher<UnscaleKernel> {
  template <class T>
  static void run(const UnscaleArgs& a, const Stream& stream) {
    kernels::Unscale<T> body{};
    body.inv_scale = a.inv_scale.data<float>(), body.found_inf = a.found_inf.data<float>();
    for (int i = 0; i < a.grads.count; ++i) {
      body.items[i] = {a.grads[i].data<T>(), kernels::all_aligned({a.grads[i].address})};
      body.chunks.push_back(a.grads[i].numel());
    }
    cuda::run(body, stream);
  }
};

}  // namespace cuda

GRADUS_CUDA_KERNEL(UnscaleArgs, kFloatingTypes, UnscaleKernel);

}  // namespace gradus
