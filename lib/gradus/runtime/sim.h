// The simulated device's knobs, and its reset. What it models and what it does not: docs/simulated_device.md.
#pragma once
#include <cstddef>
#include <cstdint>

namespace gradus {
struct TensorArg;
}

namespace gradus::sim {

/// How the simulated devices behave. The options in force begin with these values, and with those of the
/// environment variables beside them, read when a device is first asked for; what a variable says and cannot
/// be understood throws E-ENVIRONMENT.
struct Options {
  int devices = 2;  ///< GRADUS_SIM_DEVICES: 1 to 8
  size_t memory =
      size_t{4} << 30;   ///< GRADUS_SIM_MEMORY: bytes of each device, at most 16 GiB ("100MiB", "4GiB")
  double link = 0;       ///< GRADUS_SIM_LINK: bytes a second between host and device ("12GB"); 0: no limit
  double jitter_us = 0;  ///< GRADUS_SIM_JITTER: tasks start late by up to so many microseconds, at random
  bool races = false;    ///< GRADUS_SIM_RACES=1: unordered use of memory by two streams throws E-RACE
  bool launch_blocking = false;  ///< GRADUS_LAUNCH_BLOCKING=1 or CUDA_LAUNCH_BLOCKING=1: each launch waits
  int64_t fail_allocation = 0;   ///< GRADUS_SIM_FAIL_ALLOCATION: the n-th raw allocation from now on fails
  int64_t lose_device = 0;  ///< GRADUS_SIM_LOSE_DEVICE: at the n-th launch from now on its device is lost
};

/// The options in force. The two counters show what was set, not what is left of it.
Options options();
/// Waits until the devices are idle and puts `options` in force; both counters start again. Devices that are
/// taken away keep their memory until it is freed. Throws E-ARG, and changes nothing, for what is out of
/// range.
void configure(const Options& options);

/// Changes the options for a scope: `OptionsGuard slow([](auto& o) { o.link = 1e9; });`.
class OptionsGuard {
 public:
  template <class F>
  explicit OptionsGuard(const F& change) : before_(sim::options()) {
    Options options = before_;
    change(options);
    configure(options);
  }
  ~OptionsGuard() { configure(before_); }
  OptionsGuard(const OptionsGuard&) = delete;
  OptionsGuard& operator=(const OptionsGuard&) = delete;

 private:
  Options before_;
};

/// Drops the work queued on a device and forgets its error (also that it was lost). Its memory stays, with
/// undefined contents; cudaDeviceReset() would free it. Throws E-DEVICE-ORDINAL.
void reset_device(int index = 0);

namespace detail {
// The host asked for a device tensor's address: named should the host then read from it.
void note_host_pointer(const TensorArg& tensor);
}  // namespace detail

}  // namespace gradus::sim
