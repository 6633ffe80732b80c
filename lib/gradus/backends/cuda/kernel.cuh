// How an operation's kernel gets onto a GPU: from its Args to launches of bodies. For the .cu files of this
// folder; each names the kernels that it brings in with GRADUS_CUDA_KERNEL.
//
// All but launch_cuda.cuh is plain C++: tests compile these files for the CPU as well, with another
// launch_cuda.cuh (tests/cuda_on_host/), and run every operation through them.
#pragma once
#include <gradus/backends/cuda/stream.h>
#include <gradus/runtime/kernel_table.h>

#include <kernels/blocks/device_fault.cuh>
#include <kernels/blocks/launch_cuda.cuh>

namespace gradus {
namespace cuda {

/// What host kernel K is on a GPU: specialised by the files of this folder, with
/// `template <class T> static void run(const Args&, const Stream&)`.
template <class K>
struct Launcher;

/// Threads of a block where a body has no reason for another number.
inline constexpr int kBlockSize = 256;

/// Launches a body; throws what CUDA finds wrong, under the body's name.
template <kernels::Kernel Body>
void run(const Body& body, const Stream& stream, int block_size = kBlockSize) {
  check_launch(kernels::launch_cuda(body, block_size, handle_of(stream)), Body::kName, stream.device);
}

// Instantiates cuda_kernel<K, T> for each T of Types.
template <class K, class Args, DTypeSet Types>
struct Instances {
  template <int D>
  static constexpr KernelFn<Args> slot() {
    constexpr auto dtype = static_cast<DType>(D);
    if constexpr (Types.has(dtype))
      return &cuda_kernel<K, typename ElementType<dtype>::type, Args>;
    else
      return nullptr;
  }
  template <int... D>
  static constexpr std::array<KernelFn<Args>, kDTypeCount> slots(std::integer_sequence<int, D...>) {
    return {slot<D>()...};
  }
  static const std::array<KernelFn<Args>, kDTypeCount> all;
};
template <class K, class Args, DTypeSet Types>
const std::array<KernelFn<Args>, kDTypeCount> Instances<K, Args, Types>::all =
    slots(std::make_integer_sequence<int, kDTypeCount>());

}  // namespace cuda

template <class K, class T, class Args>
void cuda_kernel(const Args& args, const Stream& stream) {
  cuda::Launcher<K>::template run<T>(args, stream);
}

}  // namespace gradus

/// Compiles kernel K (last, for it may hold commas) with operands Args for the dtypes Types.
#define GRADUS_CUDA_KERNEL(Args, Types, ...) template struct gradus::cuda::Instances<__VA_ARGS__, Args, Types>
