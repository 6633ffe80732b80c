// The kernels of the device contract's tests, as a CPU and a GPU run them.
#pragma once
#include <gradus/runtime/stream.h>
#include <gradus/runtime/tensor_arg.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <tuple>

namespace gradus::contract {

/// What a Gate is made of, in memory that the host and the device see.
struct GateState {
  int open = 0, reached = 0, gave_up = 0;
};

// Long for a test, short for someone who waits for one that fails.
inline constexpr auto kPatience = std::chrono::seconds(20);

/// Returns when the gate is open, or after kPatience.
GRADUS_HD inline void pass(GateState& gate) {
#ifdef __CUDA_ARCH__
  auto now = [] {
    unsigned long long ns;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
    return ns;
  };
  volatile GateState& state = gate;
  state.reached = 1;
  __threadfence_system();
  const unsigned long long end = now() + 20'000'000'000ull;
  while (!state.open && now() < end) __nanosleep(1000);
  if (!state.open) state.gave_up = 1;
#else
  std::atomic_ref(gate.reached).store(1);
  std::atomic_ref open(gate.open);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!open.load() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  if (!open.load()) std::atomic_ref(gate.gave_up).store(1);
#endif
}

/// y = a x + b, when the gate, if there is one, is open.
struct AffineArgs {
  TensorArg x, y;
  float a, b;
  GateState* gate;
  static constexpr auto operands = std::tuple{in(&AffineArgs::x), out(&AffineArgs::y)};
};
/// y += x
struct AddArgs {
  TensorArg x, y;
  static constexpr auto operands = std::tuple{in(&AddArgs::x), inout(&AddArgs::y)};
};
/// Fails where it is to: "index 7 is out of range".
struct FailingArgs {
  TensorArg y;
  bool fails;
  static constexpr auto operands = std::tuple{inout(&FailingArgs::y)};
};

void affine_cuda(const AffineArgs& args, const Stream& stream);
void add_cuda(const AddArgs& args, const Stream& stream);
void failing_cuda(const FailingArgs& args, const Stream& stream);

}  // namespace gradus::contract
