// Automatic mixed precision, as torch.amp.autocast.
#pragma once
#include <gradus/ops/autocast.h>

#include <optional>

namespace gradus::amp {

struct AutocastOptions {
  std::optional<DType> dtype = {};  ///< kFloat16 or kBFloat16; else get_autocast_dtype()
  bool enabled = true;
  std::optional<bool> cache_enabled = {};  ///< else as it is around this scope
};

/// `with torch.autocast(device_type, dtype):` until the scope ends, on this thread, for tensors on devices of
/// that type:
///
///   to dtype    linear, matmul, mm, bmm, conv2d
///   to float32  prod and the losses; on cuda and sim also exp, expm1, log, log1p, reciprocal, rsqrt, pow,
///               softplus, softmax, log_softmax, logsumexp, sum, cumsum, norm, layer_norm; on cpu instead
///               pad() that reflects or replicates
///   neither     everything else takes what it gets; add(), cat(), where() … widen to the wider dtype
///
/// These are PyTorch 2.15's lists, which differ by device. float64 and integers are left alone. Put it around
/// the forward pass and the loss; backward() runs outside, in the dtypes that the forward pass had. Scopes
/// nest, and one with `enabled = false` is an island without.
///
/// A parameter is converted once and the copy kept until the outermost scope ends, or the parameter changes.
///
/// Throws E-DTYPE unless dtype is a half type. binary_cross_entropy() throws E-AUTOCAST inside on cuda and
/// sim: its logarithms overflow float16.
class autocast {
 public:
  explicit autocast(DeviceType type, const AutocastOptions& options = {});

 private:
  ops::AutocastScope scope_;
};

/// Whether operations on devices of that type cast now, on this thread.
bool is_autocast_enabled(DeviceType type);
/// What they cast to: at first bfloat16 on cpu, float16 on cuda and sim.
DType get_autocast_dtype(DeviceType type);
bool is_autocast_cache_enabled();
/// Drops the converted parameters of this thread.
void clear_autocast_cache();

}  // namespace gradus::amp
