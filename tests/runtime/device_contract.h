// The contract of runtime::Backend as tests that run on every device type this machine has. Each rule is one
// of the CUDA programming guide's or runtime API's; where the cpu's differs, Rules says how, and the test
// expects that.
//
// Nothing here depends on time: kernels stop at a Gate until the test opens it, so that "before" and "after"
// are facts. What must not happen while a gate is closed is given the chance to by let_copies_pass().
#pragma once
#include <gradus/runtime/launch.h>
#include <gradus/runtime/pinned.h>
#include <gradus/runtime/sim.h>
#include <gtest/gtest.h>
#include <runtime/device_contract_kernels.h>
#include <support/expect_error.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace gradus::contract {

/// What differs between device types.
struct Rules {
  bool synchronous;      ///< work is done, and its error shows, when the call that queues it returns
  bool pinned;           ///< pinned memory is told from pageable memory
  bool graphs;           ///< work can be captured
  bool launch_blocking;  ///< can be had within a running process; cuda reads its variable once, as it starts
  bool names_operand;    ///< an operand that is not the device's is found, and named; a GPU may well read it
};
constexpr Rules rules_of(DeviceType type) {
  constexpr Rules rules[kDeviceTypeCount] = {
      // cpu, sim, cuda
      {.synchronous = true,
       .pinned = false,
       .graphs = false,
       .launch_blocking = true,
       .names_operand = false},
      {.synchronous = false, .pinned = true, .graphs = true, .launch_blocking = true, .names_operand = true},
      {.synchronous = false,
       .pinned = true,
       .graphs = true,
       .launch_blocking = false,
       .names_operand = false}};
  return rules[static_cast<int>(type)];
}

/// Holds kernels back until open(). On a synchronous device it is always open: a launch would never return.
/// A kernel that waits for long gives up, so that a test that fails ends.
class Gate {
 public:
  explicit Gate(Device device);
  ~Gate();  // opens, and waits for the device: no kernel is left that looks at this
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  void open() { set(state_->open); }
  bool is_open() const { return get(state_->open); }
  /// Waits until a kernel stands at the gate (or went through).
  void wait_until_reached() const;
  /// Did a kernel have to give up? Then something waited that should not have.
  bool gave_up() const { return get(state_->gave_up); }
  /// For kernels.
  GateState* state() const { return state_; }

 private:
  static void set(int& flag) { std::atomic_ref(flag).store(1); }
  static bool get(int& flag) { return std::atomic_ref(flag).load() != 0; }
  Device device_;
  PinnedBuffer memory_;  // that kernels see too
  GateState* state_;
};

/// Calls `call`, which should wait for work behind the closed `gate`, while another thread is about to open
/// it. True if the gate was open when the call returned, as it always is if the call waits.
template <class F>
bool waits_for(Gate& gate, const F& call) {
  std::jthread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(gate.is_open() ? 0 : 20));
    gate.open();
  });
  call();
  return gate.is_open();
}

/// Device memory for floats.
class Buffer {
 public:
  explicit Buffer(Device device, int64_t n = 4, float value = 0);
  ~Buffer() { runtime::backend(device_).free(device_.index(), data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  Device device() const { return device_; }
  void* data() const { return data_; }
  size_t bytes() const { return static_cast<size_t>(n_) * sizeof(float); }
  TensorArg arg() const { return {data_, 1, {n_}, {1}, kFloat32}; }
  /// The values when all work on the device is done; all the same, or NaN.
  float value() const;
  std::vector<float> values() const;

 private:
  Device device_;
  int64_t n_;
  void* data_;
};

/// Pinned host memory for floats, all `value`.
class Pinned {
 public:
  explicit Pinned(Device device, int64_t n = 4, float value = 0)
      : n_(n), buffer_(static_cast<size_t>(n) * sizeof(float), device) {
    fill(value);
  }
  float* data() const { return static_cast<float*>(buffer_.data()); }
  size_t bytes() const { return static_cast<size_t>(n_) * sizeof(float); }
  void fill(float value) { std::fill(data(), data() + n_, value); }

 private:
  int64_t n_;
  PinnedBuffer buffer_;
};

/// Queues y = a * x + b; behind the gate if there is one.
void launch_affine(const Stream& stream, const Buffer& x, const Buffer& y, float a, float b,
                   Gate* gate = nullptr);
/// Queues a kernel that writes 1 to y when the gate is open.
inline void launch_gated(const Stream& stream, const Buffer& y, Gate& gate) {
  launch_affine(stream, y, y, 0, 1, &gate);
}
/// Queues y += x, of as many floats in device memory.
void launch_add(const Stream& stream, void* x, const Buffer& y);
/// Queues y = 0 * host + 1 with an operand that is not in the device's memory.
void launch_with_host_operand(const Stream& stream, const float* host, const Buffer& y);
/// Queues a kernel that fails.
void launch_failing(const Stream& stream, const Buffer& y);

/// Queues copies of the whole of a buffer, `host` being as large.
void copy_in(const Stream& stream, const Buffer& to, const void* host);
void copy_out(const Stream& stream, void* host, const Buffer& from);
void copy_across(const Stream& stream, const Buffer& to, const Buffer& from);

class DeviceContract : public ::testing::TestWithParam<DeviceType> {
 protected:
  DeviceContract();
  ~DeviceContract() override;

  Device device() const { return {GetParam(), 0}; }
  /// A second device of the type if there is one; else the first.
  Device other_device() const { return {GetParam(), device_count(GetParam()) > 1 ? 1 : 0}; }
  runtime::Backend& backend() const { return runtime::backend(device()); }
  Rules rules() const { return rules_of(GetParam()); }
  Stream stream() const { return Stream::create(device()); }
  Stream default_stream() const { return {device(), 0}; }

  /// Copies to the device that were queued before and could run have run when this returns: a copy of its own
  /// went through the same copy engine.
  void let_copies_pass() const;
  /// Makes the device usable again after an error; false where only the process's end does (a real GPU).
  bool reset() const;

 private:
  void load_kernels() const;

  std::unique_ptr<sim::OptionsGuard> options_;
  Stream probe_stream_;  // made before a gate closes, as all that CUDA may wait for
  std::unique_ptr<Buffer> probe_;
  std::unique_ptr<Pinned> probe_source_;
};

/// The device types that have a device here and for which `holds`.
template <class F>
std::vector<DeviceType> device_types(const F& holds) {
  std::vector<DeviceType> types;
  for (const DeviceType type : {DeviceType::cpu, DeviceType::sim, DeviceType::cuda})
    if (device_count(type) > 0 && holds(type)) types.push_back(type);
  return types;
}
inline std::string type_name(const ::testing::TestParamInfo<DeviceType>& info) {
  return to_string(info.param);
}

}  // namespace gradus::contract

/// A test suite of the contract, run on every device type for which `holds`, an expression of `type`.
#define DEVICE_CONTRACT_WHERE(suite, holds)                                                        \
  class suite : public ::gradus::contract::DeviceContract {};                                      \
  INSTANTIATE_TEST_SUITE_P(, suite,                                                                \
                           ::testing::ValuesIn(::gradus::contract::device_types(                   \
                               []([[maybe_unused]] ::gradus::DeviceType type) { return holds; })), \
                           ::gradus::contract::type_name)
#define DEVICE_CONTRACT(suite) DEVICE_CONTRACT_WHERE(suite, true)
