#include <gradus/runtime/observer.h>

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <vector>

namespace gradus::runtime {
namespace {

std::shared_mutex mutex;
std::vector<LaunchObserver*>& observers() {
  static std::vector<LaunchObserver*> list;
  return list;
}

}  // namespace

void add_observer(LaunchObserver* observer) {
  std::unique_lock lock(mutex);
  observers().push_back(observer);
  detail::observer_count.store(static_cast<int>(observers().size()), std::memory_order_relaxed);
}

void remove_observer(LaunchObserver* observer) {
  std::unique_lock lock(mutex);
  std::erase(observers(), observer);
  detail::observer_count.store(static_cast<int>(observers().size()), std::memory_order_relaxed);
}

void detail::notify_begin(const LaunchRecord& record) {
  std::shared_lock lock(mutex);
  for (LaunchObserver* o : observers()) o->begin(record);
}

void detail::notify_end(const LaunchRecord& record) {
  std::shared_lock lock(mutex);
  for (LaunchObserver* o : observers()) o->end(record);
}

}  // namespace gradus::runtime
