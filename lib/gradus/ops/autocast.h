// What automatic mixed precision asks of the operations; users call gradus::amp (amp/autocast.h).
//
// An operation of one of PyTorch's lists begins with a line such as
//
//   if (const auto cast = ops::autocast(ops::kLowerPrecision, a)) return matmul(cast(a), cast(b));
//
// Where autocast is on for a's device this runs the operation again on converted operands, with autocast off
// for what it is made of. Elsewhere it costs one branch. All other operations take their operands as they
// are: add(), cat() and their like widen to the wider of two dtypes by themselves.
#pragma once
#include <gradus/tensor/grad_mode.h>
#include <gradus/tensor/tensor.h>

namespace gradus::ops {

/// Autocast as one thread has it set, for each type of device.
struct AutocastSettings {
  struct Entry {
    bool enabled = false;
    DType dtype = DType::float16;  ///< of the lower-precision list
  };
  Entry devices[kDeviceTypeCount] = {{false, DType::bfloat16}, {}, {}};
  bool cache = true;  ///< converted weights are kept until the outermost scope ends

  Entry& of(DeviceType type) { return devices[static_cast<int>(type)]; }
  const Entry& of(DeviceType type) const { return devices[static_cast<int>(type)]; }
};

namespace detail {
inline thread_local AutocastSettings autocast_settings;
inline thread_local bool autocast_on = false;  // for a device at least, and not inside an operation
}  // namespace detail

/// This thread's settings until the scope ends. At the end of the outermost one the converted weights are
/// dropped.
class AutocastScope {
 public:
  explicit AutocastScope(const AutocastSettings& settings);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  AutocastSettings before_;
  bool before_on_;
};

/// No operation casts while this lives: what an operation, or a backward pass, is made of works in the dtypes
/// it was given.
class AutocastOff {
 public:
  AutocastOff() : before_(detail::autocast_on) { detail::autocast_on = false; }
  ~AutocastOff() { detail::autocast_on = before_; }
  AutocastOff(const AutocastOff&) = delete;
  AutocastOff& operator=(const AutocastOff&) = delete;

 private:
  bool before_;
};

/// What an operation's floating-point operands become; float64 ones stay.
enum class CastTo : uint8_t { none, lower, float32 };

/// A list of PyTorch's, by device type. sim does as cuda.
struct CastPolicy {
  CastTo cpu, gpu;
  CastTo on(DeviceType type) const { return type == DeviceType::cpu ? cpu : gpu; }
};
inline constexpr CastPolicy kLowerPrecision{CastTo::lower, CastTo::lower};
inline constexpr CastPolicy kFloat32Precision{CastTo::float32, CastTo::float32};
inline constexpr CastPolicy kFloat32OnGpu{CastTo::none, CastTo::float32};
inline constexpr CastPolicy kFloat32OnCpu{CastTo::float32, CastTo::none};

/// True where the operands must be cast; cast(x) does it. Autocast is off until the end of its life.
class Cast {
 public:
  Cast() = default;
  Cast(DeviceType type, DType to) : type_(type), to_(to), casts_(true) { detail::autocast_on = false; }
  ~Cast() {
    if (casts_) [[unlikely]]
      detail::autocast_on = true;
  }
  Cast(const Cast&) = delete;
  Cast& operator=(const Cast&) = delete;

  explicit operator bool() const { return casts_; }
  /// x itself if it is undefined, of integers, float64, on a device of another type, or has the dtype.
  Tensor operator()(const Tensor& x) const;

 private:
  DeviceType type_ = DeviceType::cpu;
  DType to_ = DType::float32;
  bool casts_ = false;
};

Cast autocast_of_device(CastPolicy policy, const Tensor& x);

inline Cast autocast(CastPolicy policy, const Tensor& x) {
  if (!detail::autocast_on) [[likely]]
    return Cast();
  return autocast_of_device(policy, x);
}

/// How many converted weights this thread keeps.
size_t autocast_cache_size();
/// Drops them.
void clear_autocast_cache();

}  // namespace gradus::ops
