#include <gradus/base/parallel.h>
#include <gradus/distributed/collective_queue.h>
#include <gradus/distributed/no_sigpipe.h>
#include <gradus/tensor/grad_mode.h>
#include <gradus/tensor/views.h>

#include <cstring>

namespace gradus::distributed {
namespace {

Failure of(const Failure& failure, const Signature& signature) {
  return {failure.code, str(signature, ": ", failure.text), failure.hint};
}

}  // namespace

CollectiveQueue::CollectiveQueue(std::shared_ptr<Backend> backend, int size, bool checking, Explain explain)
    : shared_(std::make_shared<Shared>()) {
  shared_->backend = std::move(backend);
  shared_->size = size;
  shared_->checking = checking;
  shared_->explain = std::move(explain);
  thread_ = std::thread([shared = shared_] { shared->work(); });
}

CollectiveQueue::~CollectiveQueue() {
  finish();
  bool stuck = false;
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->closing = true;
    shared_->changed.notify_all();
    stuck = shared_->running;
  }
  stuck ? thread_.detach() : thread_.join();
}

void CollectiveQueue::finish() {
  std::unique_lock lock(shared_->mutex);
  shared_->changed.wait(lock,
                        [&] { return shared_->failure || (shared_->tasks.empty() && !shared_->running); });
}

Work CollectiveQueue::push(Signature signature, std::function<void(Backend&)> run) {
  Task task{signature, std::move(run), {}};
  const std::lock_guard lock(shared_->mutex);
  task.signature.number = ++shared_->pushed;
  if (shared_->failure) {
    task.work.finish(of(*shared_->failure, task.signature));
  } else {
    shared_->tasks.push_back(task);
    shared_->changed.notify_all();
  }
  return task.work;
}

void CollectiveQueue::fail(Failure failure) { shared_->fail(std::move(failure)); }

std::optional<Failure> CollectiveQueue::failure() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->failure;
}

CollectiveQueue::Position CollectiveQueue::position() const {
  const std::lock_guard lock(shared_->mutex);
  Position found{shared_->last.number, shared_->running, "", {}};
  if (found.number > 0) found.what = to_string(shared_->last);
  if (found.running) found.time = std::chrono::steady_clock::now() - shared_->started;
  return found;
}

void CollectiveQueue::Shared::work() {
  const SerialGuard serial;
  const NoGradGuard no_grad;
  const NoSigpipe no_sigpipe;
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [&] { return closing || !tasks.empty(); });
    if (tasks.empty()) return;
    run_first(lock);
  }
}

void CollectiveQueue::Shared::run_first(std::unique_lock<std::mutex>& lock) {
  {
    const Task task = tasks.front();
    running = true;
    started = std::chrono::steady_clock::now();
    last = task.signature;
    lock.unlock();
    std::optional<Failure> why = attempt(task);
    if (why) fail(std::move(*why));
    task.work.finish();  // unless it has failed
  }
  lock.lock();
  running = false;
  if (!failure) tasks.pop_front();
  changed.notify_all();
}

std::optional<Failure> CollectiveQueue::Shared::attempt(const Task& task) {
  try {
    if (checking) compare(task.signature);
    task.run(*backend);
    return {};
  } catch (const std::exception& error) {
    return explain(error);
  }
}

void CollectiveQueue::Shared::compare(const Signature& mine) {
  constexpr int64_t kBytes = sizeof(Signature);
  const Tensor input = empty({kBytes}, kUInt8), output = empty({size, kBytes}, kUInt8);
  std::memcpy(input.raw_data(), &mine, sizeof mine);
  backend->all_gather(output, input);
  std::vector<Signature> all(static_cast<size_t>(size));
  std::memcpy(static_cast<void*>(all.data()), output.raw_data(), output.nbytes());
  if (const auto text = difference(all))
    GRADUS_FAIL(
        "E-COLLECTIVE", *text,
        hint("every rank must call the same collectives in the same order, with equal shapes and dtypes"));
}

void CollectiveQueue::Shared::fail(Failure why) {
  const std::lock_guard lock(mutex);
  if (failure) return;
  failure = std::move(why);
  for (const Task& task : tasks) task.work.finish(of(*failure, task.signature));
  tasks.clear();
  changed.notify_all();
}

}  // namespace gradus::distributed
