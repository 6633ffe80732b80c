// The one exception type, and the checks that throw it.
//
// Every message reads `operation: what is wrong, with both values`; the remedy follows on a line of its own:
//   GRADUS_CHECK(a.dim() == 2, "E-SHAPE", "matmul: expected a 2-D tensor, got shape ", a.sizes(),
//                hint("call .flatten(1) first"));
#pragma once
#include <concepts>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace gradus {

/// Where in the source: a std::source_location, which clang 14 cannot compile.
struct SourceLocation {
  const char* file;
  int line;
  static constexpr SourceLocation current(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

/// What every Gradus call throws.
class Error : public std::runtime_error {
 public:
  Error(std::string code, const std::string& message, std::string hint, SourceLocation where);

  /// Stable identifier such as "E-SHAPE"; tests and tools match on it, never on the text.
  const std::string& code() const { return code_; }
  /// The remedy, or "" where there is none to name.
  const std::string& hint() const { return hint_; }
  /// "file.cpp:123" of the check that failed.
  const std::string& where() const { return where_; }

 private:
  std::string code_, hint_, where_;
};

/// Marks a part of a check's message as its remedy.
struct Hint {
  std::string text;
};

namespace detail {

// Number text is written without the global locale, which may group digits (1,234) or use a decimal comma.
void append(std::string& out, std::string_view text);
void append(std::string& out, bool value);
void append(std::string& out, char value);
void append(std::string& out, float value);
void append(std::string& out, double value);
void append_signed(std::string& out, int64_t value);
void append_unsigned(std::string& out, uint64_t value);
inline void append(std::string& out, const char* text) { append(out, std::string_view(text)); }
inline void append(std::string& out, const std::string& text) { append(out, std::string_view(text)); }
template <std::signed_integral T>
void append(std::string& out, T value) {
  append_signed(out, value);
}
template <std::unsigned_integral T>
void append(std::string& out, T value) {
  append_unsigned(out, value);
}
template <class T>
requires requires(const T& t) { std::string(to_string(t)); }
void append(std::string& out, const T& value) { append(out, to_string(value)); }

struct MessageParts {
  std::string text, hint;
  template <class T>
  void add(const T& part) {
    if constexpr (std::is_same_v<T, Hint>) {
      hint = part.text;
    } else {
      append(text, part);
    }
  }
};

[[noreturn]] void throw_error(const char* code, MessageParts parts, SourceLocation where);

template <class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void fail(SourceLocation where, const char* code,
                                                 const Parts&... parts) {
  MessageParts message;
  (message.add(parts), ...);
  throw_error(code, std::move(message), where);
}

}  // namespace detail

/// Joins `parts` into one string; numbers are written in the C locale whatever the global one is.
template <class... Parts>
std::string str(const Parts&... parts) {
  std::string out;
  (detail::append(out, parts), ...);
  return out;
}

/// A check's remedy, made of the same kinds of parts as its message.
template <class... Parts>
Hint hint(const Parts&... parts) {
  return {str(parts...)};
}

}  // namespace gradus

/// Throws gradus::Error for a mistake of the caller. Parts are text, numbers, shapes, dtypes, devices, and
/// hint(…).
#define GRADUS_CHECK(cond, code, ...)                                                 \
  do {                                                                                \
    if (!(cond)) [[unlikely]]                                                         \
      ::gradus::detail::fail(::gradus::SourceLocation::current(), code, __VA_ARGS__); \
  } while (false)

/// Throws gradus::Error unconditionally.
#define GRADUS_FAIL(code, ...) ::gradus::detail::fail(::gradus::SourceLocation::current(), code, __VA_ARGS__)

/// Throws gradus::Error (E-INTERNAL) for a mistake of ours.
#define GRADUS_ASSERT(cond, ...)                                                           \
  do {                                                                                     \
    if (!(cond)) [[unlikely]]                                                              \
      ::gradus::detail::fail(::gradus::SourceLocation::current(), "E-INTERNAL",            \
                             "internal: `" #cond "` does not hold. ", ##__VA_ARGS__,       \
                             ::gradus::hint("this is a bug in Gradus; please report it")); \
  } while (false)
