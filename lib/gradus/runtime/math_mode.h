// How the vendor libraries of a device may compute: PyTorch's switches. The cpu and sim heed none of them.
#pragma once
#include <atomic>
#include <cstdint>
#include <string_view>

namespace gradus {

/// How far the inputs of float32 matrix products may be rounded.
enum class MatmulPrecision : uint8_t {
  highest,  ///< not at all; the default
  high,     ///< to TF32: 11 of float32's 24 bits
  medium,   ///< to bfloat16 where that is faster, else as high
};

/// As torch.set_float32_matmul_precision: "highest", "high" or "medium", in any case. Throws E-ARG for
/// another word, where PyTorch warns and goes on as before.
void set_float32_matmul_precision(std::string_view precision);
/// "highest", "high" or "medium".
const char* get_float32_matmul_precision();

namespace runtime {
/// What the next float32 matrix product on a device that heeds it may do.
MatmulPrecision float32_matmul_precision();
}  // namespace runtime

namespace backends::cudnn {
/// As torch.backends.cudnn.benchmark: cuDNN tries its algorithms on the first convolution of each shape and
/// keeps the fastest. Pays where shapes repeat; which one wins, and so the last bits, may change from run to
/// run.
inline std::atomic<bool> benchmark{false};

/// As torch.backends.cudnn.allow_tf32, and true as there: float32 convolutions may round their inputs to
/// TF32, 11 of float32's 24 bits. set_float32_matmul_precision() is for matrix products alone.
inline std::atomic<bool> allow_tf32{true};
}  // namespace backends::cudnn

}  // namespace gradus
