#include <gradus/base/error.h>
#include <gradus/base/parallel.h>
#include <sched.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>
#ifdef GRADUS_STD_THREADS
#include <condition_variable>
#include <deque>
#else
#include <omp.h>
#endif

namespace gradus {
namespace {

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return std::max(1u, std::thread::hardware_concurrency());
  return std::max(1, CPU_COUNT(&set));
}

// The first exception of several threads, kept until it can be thrown on the calling one.
class FirstError {
 public:
  template <class F>
  void guard(const F& f) noexcept {
    try {
      f();
    } catch (...) {
      std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr error_;
};

thread_local bool inside = false;

#ifndef GRADUS_STD_THREADS

// Unbound OpenMP threads that meet on one core turned 1 ms primitives into 8 ms here. Binding works only from
// inside a parallel region; the calling thread and its affinity are left alone when the process has one core.
void bind_threads(int n) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < n || n == 1) return;
  std::vector<int> cores;
  for (int c = 0; c < CPU_SETSIZE; ++c)
    if (CPU_ISSET(c, &allowed)) cores.push_back(c);
#pragma omp parallel num_threads(n)
  {
    const int t = omp_get_thread_num();
    if (t > 0) {  // thread 0 is the caller's own: it may start loader threads, which inherit its affinity
      cpu_set_t mine;
      CPU_ZERO(&mine);
      CPU_SET(cores[t], &mine);
      sched_setaffinity(0, sizeof mine, &mine);
    }
  }
}

std::atomic<int>& threads() {
  static std::atomic<int> n = [] {
    const int cores = std::min(usable_cores(), omp_get_max_threads());
    omp_set_num_threads(cores);
    bind_threads(cores);
    return cores;
  }();
  return n;
}

// Runs tasks 0 … tasks-1, each on a thread of the team.
template <class F>
void run_on_team(int tasks, const F& run) {
#pragma omp parallel for num_threads(tasks) schedule(static, 1)
  for (int t = 0; t < tasks; ++t) run(t);
}

#else

std::atomic<int>& threads() {
  static std::atomic<int> n = usable_cores();
  return n;
}

// Threads that wait for tasks. Any thread may call run(); there are as many workers as one call ever needed.
class Team {
 public:
  // Runs task 0 on the calling thread and the others on workers; returns when all are done.
  void run(int tasks, detail::TaskRef task) {
    Job job{task, tasks - 1};
    {
      std::lock_guard lock(mutex_);
      while (static_cast<int>(workers_.size()) < tasks - 1) workers_.emplace_back([this] { work(); });
      for (int t = 1; t < tasks; ++t) queue_.push_back({&job, t});
    }
    ready_.notify_all();
    task(0);
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return job.unfinished == 0; });
  }

 private:
  struct Job {
    detail::TaskRef task;
    int unfinished;
  };
  struct Entry {
    Job* job;
    int index;
  };
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      ready_.wait(lock, [&] { return !queue_.empty(); });
      const Entry next = queue_.front();
      queue_.pop_front();
      lock.unlock();
      next.job->task(next.index);
      lock.lock();
      if (--next.job->unfinished == 0) done_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable ready_, done_;
  std::deque<Entry> queue_;
  std::vector<std::thread> workers_;
};

template <class F>
void run_on_team(int tasks, const F& run) {
  static auto* team = new Team;  // never destroyed: threads may still use it when the process ends
  team->run(tasks, detail::TaskRef(run));
}

#endif

}  // namespace

int get_num_threads() { return threads().load(std::memory_order_relaxed); }

void set_num_threads(int n) {
  GRADUS_CHECK(n >= 1, "E-ARG", "set_num_threads: expected at least 1, got ", n);
  threads() = n;
#ifndef GRADUS_STD_THREADS
  omp_set_num_threads(n);
#endif
}

bool detail::in_parallel() { return inside; }

SerialGuard::SerialGuard() : inside_before_(std::exchange(inside, true)) {
#ifndef GRADUS_STD_THREADS
  threads();  // asks OpenMP for its default, which must happen before it is changed here
  threads_before_ = omp_get_max_threads();
  omp_set_num_threads(1);  // of this thread only
#endif
}

SerialGuard::~SerialGuard() {
  inside = inside_before_;
#ifndef GRADUS_STD_THREADS
  omp_set_num_threads(threads_before_);
#endif
}

void detail::run_tasks(int tasks, TaskRef body) {
  FirstError error;
  run_on_team(tasks, [&](int t) {
    inside = true;
    error.guard([&] { body(t); });
    inside = false;
  });
  error.rethrow();
}

}  // namespace gradus
