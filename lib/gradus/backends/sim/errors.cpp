// How a device fails: once, for good, and usually noticed by a later call than the one at fault.
#include <gradus/backends/sim/sim_backend.h>
#include <pthread.h>

namespace gradus::sim {
namespace {

constexpr const char* kUntilReset =
    "the device cannot be used again until the process ends or sim::reset_device()";

std::atomic<bool> in_forked_child{false};

}  // namespace

void SimBackend::notice_forks() {
  ::pthread_atfork(nullptr, nullptr, [] { in_forked_child = true; });
}

void SimBackend::check_usable(int device, bool own) {
  GRADUS_CHECK(
      !in_forked_child.load(std::memory_order_relaxed), "E-FORK",
      "sim: cannot re-initialize the simulated device in a forked process: its threads stayed behind",
      hint("use the device in the child alone, or start the child as a program of its own"));
  DeviceState& state = devices_[device];
  if (!state.failed.load()) [[likely]]
    return;
  std::lock_guard lock(failure_mutex_);
  if (!state.failure) return;
  const Failure& f = *state.failure;
  const std::string remedy = f.hint.empty() ? "" : f.hint + "; ";
  if (own) GRADUS_FAIL(f.code.c_str(), f.text, hint(remedy, kUntilReset));
  GRADUS_FAIL(
      f.code.c_str(), f.text,
      ". The error comes from work that was queued earlier: the call that reports it may have no part "
      "in it",
      hint(remedy, "set GRADUS_LAUNCH_BLOCKING=1 to see it at the launch at fault; ", kUntilReset));
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
          ""};
}

// What a device that waits for another finds when that one has failed.
SimBackend::Failure SimBackend::failure_from(int device, int waiting) {
  std::lock_guard lock(failure_mutex_);
  const std::optional<Failure>& failure = devices_[device].failure;
  if (!failure) return {"E-DEVICE-ASSERT", "", ""};
  return {failure->code, str(failure->text, "; ", Device(DeviceType::sim, waiting), " waited for that"),
          failure->hint};
}

// A kernel threw: on a GPU it would have hit an assert.
SimBackend::Failure SimBackend::failure_of(int device, const char* name, std::exception_ptr error) {
  const Device where(DeviceType::sim, device);
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    const std::string text = e.what();  // its hint goes with ours, at the end
    return {
        "E-DEVICE-ASSERT",
        str(name, ": device-side assert triggered on ", where, ": ", text.substr(0, text.find("\n  hint: "))),
        e.hint()};
  } catch (const std::exception& e) {
    return {"E-DEVICE-ASSERT", str(name, ": device-side assert triggered on ", where, ": ", e.what()), ""};
  } catch (...) {
    return {"E-DEVICE-ASSERT", str(name, ": device-side assert triggered on ", where), ""};
  }
}

}  // namespace gradus::sim
