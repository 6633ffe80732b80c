// float16 and bfloat16 where the processor cannot compute in them: inputs are widened to float32, the kernel
// runs, and the outputs are rounded. The result is the half type's; the time is not.
#pragma once
#include <gradus/runtime/kernel_table.h>
#include <gradus/runtime/tensor_arg.h>

#include <deque>
#include <memory>
#include <tuple>
#include <vector>

namespace gradus::cpu {

/// Copies `from` into `to`, which has the same sizes, converting between float32 and a half type.
void convert(const TensorArg& from, const TensorArg& to);

/// A float32 copy of `half` in memory of its own, with the same sizes; the order of a dense one is kept.
class Widened {
 public:
  explicit Widened(const TensorArg& half);
  const TensorArg& arg() const { return wide_; }

 private:
  TensorArg wide_;
  std::unique_ptr<float[]> values_;
};

/// Warns, once a process and dtype, that float32 is what computes.
void say_widened(DType half);

/// Runs the float32 kernel `fn` on widened copies of all half operands of `args`.
template <class Args>
void run_widened(const Args& args, KernelFn<Args> fn, const Stream& stream) {
  Args wide = args;
  std::deque<Widened> copies;
  auto widen = [&](const auto& o) {
    TensorArg& t = wide.*(o.field);
    if (!t.present() || (t.dtype != DType::float16 && t.dtype != DType::bfloat16)) return;
    say_widened(t.dtype);
    copies.emplace_back(t);
    if (o.access != Access::write) convert(t, copies.back().arg());
    t = copies.back().arg();
  };
  std::apply([&](const auto&... o) { (widen(o), ...); }, Args::operands);
  fn(wide, stream);
  auto narrow = [&](const auto& o) {
    const TensorArg &from = wide.*(o.field), &to = args.*(o.field);
    if (to.present() && o.access != Access::read && from.address != to.address) convert(from, to);
  };
  std::apply([&](const auto&... o) { (narrow(o), ...); }, Args::operands);
}

}  // namespace gradus::cpu
