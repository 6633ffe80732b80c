#include <gradus/base/log.h>

#include <cstdio>
#include <mutex>
#include <utility>

namespace gradus {
namespace {

std::mutex mutex;
WarningHandler& handler() {
  static WarningHandler h;
  return h;
}

}  // namespace

WarningHandler set_warning_handler(WarningHandler next) {
  std::lock_guard lock(mutex);
  return std::exchange(handler(), std::move(next));
}

void detail::emit_warning(const std::string& text) {
  WarningHandler current;
  {
    std::lock_guard lock(mutex);
    current = handler();
  }
  if (current) {
    current(text);
  } else {
    std::fprintf(stderr, "gradus warning: %s\n", text.c_str());
  }
}

}  // namespace gradus
