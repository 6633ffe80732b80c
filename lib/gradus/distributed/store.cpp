#include <gradus/base/error.h>
#include <gradus/distributed/store.h>

#include <algorithm>
#include <thread>

namespace gradus::distributed {

bool Store::wait(const std::vector<std::string>& keys, milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  milliseconds pause(1);
  for (const std::string& key : keys) {
    while (!try_get(key)) {
      if (std::chrono::steady_clock::now() >= end) return false;
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, milliseconds(20));
    }
  }
  return true;
}

std::string Store::get(const std::string& key, milliseconds timeout) {
  GRADUS_CHECK(wait({key}, timeout), "E-TIMEOUT", where(), ": nobody has set '", key, "' within ",
               timeout.count() / 1000.0, " s");
  return *try_get(key);
}

}  // namespace gradus::distributed
