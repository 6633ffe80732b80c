#include <gradus/distributed/work.h>

#include <utility>

namespace gradus::distributed {

void Work::wait() const {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return state_->over; });
  if (state_->error) std::rethrow_exception(state_->error);
}

bool Work::is_completed() const {
  const std::lock_guard lock(state_->mutex);
  return state_->over;
}

std::exception_ptr Work::exception() const {
  const std::lock_guard lock(state_->mutex);
  return state_->error;
}

void Work::finish(std::exception_ptr error) const {
  {
    const std::lock_guard lock(state_->mutex);
    if (std::exchange(state_->over, true)) return;
    state_->error = std::move(error);
  }
  state_->changed.notify_all();
}

}  // namespace gradus::distributed
