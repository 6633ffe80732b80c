#include <gradus/distributed/work.h>

#include <utility>

namespace gradus::distributed {

void Work::wait() const {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return state_->over; });
  if (state_->failure) throw error_of(*state_->failure);
}

bool Work::is_completed() const {
  const std::lock_guard lock(state_->mutex);
  return state_->over;
}

std::exception_ptr Work::exception() const {
  const std::lock_guard lock(state_->mutex);
  return state_->failure ? std::make_exception_ptr(error_of(*state_->failure)) : nullptr;
}

void Work::finish(std::optional<Failure> failure) const {
  {
    const std::lock_guard lock(state_->mutex);
    if (std::exchange(state_->over, true)) return;
    state_->failure = std::move(failure);
  }
  state_->changed.notify_all();
}

}  // namespace gradus::distributed
