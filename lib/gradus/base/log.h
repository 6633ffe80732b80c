// Warnings: text on stderr unless a handler is set (tests set one to read them).
#pragma once
#include <gradus/base/error.h>

#include <functional>
#include <string>

namespace gradus {

using WarningHandler = std::function<void(const std::string&)>;

/// Replaces the handler and returns the one before; an empty handler means stderr.
WarningHandler set_warning_handler(WarningHandler handler);

namespace detail {
void emit_warning(const std::string& text);
}

/// Warns. Parts as in GRADUS_CHECK.
template <class... Parts>
void warn(const Parts&... parts) {
  detail::emit_warning(str(parts...));
}

}  // namespace gradus

/// Warns the first time this line runs in the process.
#define GRADUS_WARN_ONCE(...)                                       \
  do {                                                              \
    static const bool warned = (::gradus::warn(__VA_ARGS__), true); \
    (void)warned;                                                   \
  } while (false)
