// How a device fails: once, for good, and usually noticed by a later call than the one at fault.
#include <gradus/backends/sim/sim_backend.h>

namespace gradus::sim {
namespace {

constexpr const char* kLate =
    "set GRADUS_LAUNCH_BLOCKING=1 to see it at the launch at fault; the device cannot be used again until "
    "the "
    "process ends or sim::reset_device()";

}  // namespace

void SimBackend::check_usable(int device) {
  DeviceState& state = devices_[device];
  if (!state.failed.load()) [[likely]]
    return;
  std::lock_guard lock(failure_mutex_);
  if (!state.failure) return;
  GRADUS_FAIL(
      state.failure->code.c_str(), state.failure->text,
      ". The error comes from work that was queued earlier: the call that reports it may have no part "
      "in it",
      hint(state.failure->hint));
}

// The first failure stays: what comes after it is its consequence.
void SimBackend::fail_device(int device, Failure failure) {
  std::lock_guard lock(failure_mutex_);
  DeviceState& state = devices_[device];
  if (!state.failure) state.failure = std::move(failure);
  state.failed = true;
}

SimBackend::Failure SimBackend::illegal_address(int device, const char* name, int operand,
                                                const TensorArg& tensor) {
  return {"E-ILLEGAL-ADDRESS",
          str(name, ": an illegal memory access was encountered on ", Device(DeviceType::sim, device),
              ": operand ", operand, ", a ", to_string(tensor.dtype), " tensor of shape ", tensor.sizes,
              ", is not in memory of this device"),
          kLate};
}

// A kernel threw: on a GPU it would have hit an assert.
SimBackend::Failure SimBackend::failure_of(int device, const char* name, std::exception_ptr error) {
  const Device where(DeviceType::sim, device);
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return {"E-DEVICE-ASSERT", str(name, ": device-side assert triggered on ", where, ": ", e.what()), kLate};
  } catch (...) {
    return {"E-DEVICE-ASSERT", str(name, ": device-side assert triggered on ", where), kLate};
  }
}

}  // namespace gradus::sim
