// launch(): the only way to run a kernel, on any device. Counting, observers (profiler, compile) and a
// simulated device's checks hook in here and nowhere else.
#pragma once
#include <gradus/runtime/backend.h>
#include <gradus/runtime/device_stats.h>
#include <gradus/runtime/kernel_table.h>
#include <gradus/runtime/observer.h>

#include <tuple>
#include <type_traits>

namespace gradus {
namespace detail {

// For an observer (LaunchOperand, of constant Args) and for a queueing backend (TaskOperand).
template <class Operand>
void list_operand(auto& arg, Access access, Operand* list, int& n) {
  if constexpr (requires { arg.count; }) {
    for (int i = 0; i < arg.count; ++i) list_operand(arg.items[i], access, list, n);
  } else {
    if (arg.present()) list[n++] = {&arg, access};
  }
}

template <class Operand>
int list_operands(auto& args, Operand* list) {
  using Args = std::remove_cvref_t<decltype(args)>;
  int n = 0;
  std::apply([&](const auto&... o) { (list_operand(args.*(o.field), o.access, list, n), ...); },
             Args::operands);
  return n;
}

// What a queueing backend carries to its worker.
template <class Args>
struct Task {
  KernelFn<Args> fn;
  Stream stream;
  Args args;
  static void run(const void* arguments) {
    const auto& task = *static_cast<const Task*>(arguments);
    task.fn(task.args, task.stream);
  }
  static int operands(void* arguments, runtime::TaskOperand* list) {
    return list_operands(static_cast<Task*>(arguments)->args, list);
  }
};

template <class Args>
[[gnu::noinline]] void queue(const char* name, KernelFn<Args> fn, const Stream& stream, const Args& args) {
  static_assert(std::is_trivially_copyable_v<Args>, "a queueing device copies Args byte by byte");
  const Task<Args> task{fn, stream, args};
  runtime::backend(stream.device)
      .run(stream, {name, &Task<Args>::run, &Task<Args>::operands, &task, sizeof task});
}

template <class Args>
void dispatch(const char* name, KernelFn<Args> fn, const Stream& stream, const Args& args) {
  if (stream.device.is_sim()) {
    queue(name, fn, stream, args);
  } else {
    fn(args, stream);
  }
}

template <class Args>
[[gnu::noinline]] void dispatch_observed(const char* name, KernelFn<Args> fn, const Stream& stream,
                                         const Args& args) {
  runtime::LaunchOperand operands[runtime::kMaxOperands];
  const runtime::LaunchRecord record{name, stream, operands, list_operands(args, operands)};
  runtime::detail::notify_begin(record);
  struct End {  // also where the launch throws
    const runtime::LaunchRecord& record;
    ~End() { runtime::detail::notify_end(record); }
  } const end{record};
  dispatch(name, fn, stream, args);
}

}  // namespace detail

/// Runs the kernel of `table` for `dtype` on `stream`. Args is a plain struct whose
/// `static constexpr auto operands = std::tuple{in(&Args::x), out(&Args::y)}` names every TensorArg in it.
template <class Args>
void launch(const KernelTable<Args>& table, DType dtype, const Stream& stream, const Args& args) {
  static_assert(std::tuple_size_v<decltype(Args::operands)> > 0, "an Args struct lists its operands");
  const KernelFn<Args> fn = table.get(stream.device.type(), dtype);
  detail::count(detail::counters_of(stream.device).launches);
  if (runtime::detail::observer_count.load(std::memory_order_relaxed) == 0) [[likely]] {
    detail::dispatch(table.name(), fn, stream, args);
  } else {
    detail::dispatch_observed(table.name(), fn, stream, args);
  }
}

}  // namespace gradus
