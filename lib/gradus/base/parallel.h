// Loops over the CPU's cores. One implementation over OpenMP; one over std::thread for ThreadSanitizer builds
// (GRADUS_STD_THREADS), which cannot see libgomp's synchronisation.
#pragma once
#include <algorithm>
#include <cstdint>

namespace gradus {

/// Threads that parallel loops and oneDNN use. Default: the cores this process may run on.
int get_num_threads();
/// Sets it; throws E-ARG unless n >= 1.
void set_num_threads(int n);

namespace detail {
// A callable that outlives the call it is passed to; unlike std::function it never allocates.
class TaskRef {
 public:
  template <class F>
  explicit TaskRef(const F& f)
      : f_(&f), call_([](const void* f, int task) { (*static_cast<const F*>(f))(task); }) {}
  void operator()(int task) const { call_(f_, task); }

 private:
  const void* f_;
  void (*call_)(const void*, int);
};

// Runs body(0) … body(tasks-1), each on a thread of its own where there are enough. Rethrows the first
// exception.
void run_tasks(int tasks, TaskRef body);
// True inside a parallel loop: a nested one runs on the calling thread.
bool in_parallel();
}  // namespace detail

/// Calls f(begin_i, end_i) for consecutive parts of [begin, end), each at least `grain` long, on several
/// threads; with less than two parts, on the calling one. The split depends on the range, the grain and the
/// thread count only. An exception from f reaches the caller.
template <class F>
void parallel_for(int64_t begin, int64_t end, int64_t grain, const F& f) {
  const int64_t n = end - begin;
  if (n <= 0) return;
  const int64_t most = n / std::max<int64_t>(grain, 1);  // parts of at least `grain`
  if (most <= 1 || detail::in_parallel()) return f(begin, end);
  const int64_t tasks = std::min<int64_t>(get_num_threads(), most);
  if (tasks == 1) return f(begin, end);
  const auto part = [&](int t) { f(begin + n * t / tasks, begin + n * (t + 1) / tasks); };
  detail::run_tasks(static_cast<int>(tasks), detail::TaskRef(part));
}

/// While one lives, this thread's parallel loops (oneDNN's too) run on this thread alone. For worker threads,
/// each of which would start as many threads as there are cores.
class SerialGuard {
 public:
  SerialGuard();
  ~SerialGuard();
  SerialGuard(const SerialGuard&) = delete;
  SerialGuard& operator=(const SerialGuard&) = delete;

 private:
  bool inside_before_;
  int threads_before_ = 1;
};

}  // namespace gradus
