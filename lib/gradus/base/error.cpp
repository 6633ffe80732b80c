#include <gradus/base/error.h>

#include <array>
#include <charconv>
#include <cmath>

namespace gradus {
namespace {

std::string place(SourceLocation where) {
  std::string_view file = where.file;
  if (auto slash = file.rfind('/'); slash != file.npos) file.remove_prefix(slash + 1);
  return str(file, ":", where.line);
}

}  // namespace

Error::Error(std::string code, const std::string& message, std::string hint, SourceLocation where)
    : std::runtime_error(hint.empty() ? message : message + "\n  hint: " + hint),
      code_(std::move(code)),
      hint_(std::move(hint)),
      where_(place(where)) {}

namespace detail {
namespace {

template <class T>
void append_number(std::string& out, T value) {
  std::array<char, 40> text;
  auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  (void)error;  // 40 characters hold every shortest round-trip number
  out.append(text.data(), end);
}

// Messages quote names and bytes of files; what a terminal would take for a command is written \x1b.
std::string printable(const std::string& text) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n') || byte == 0x7f)
      out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    else
      out += c;
  }
  return out;
}

}  // namespace

void append(std::string& out, std::string_view text) { out.append(text); }
void append(std::string& out, bool value) { out.append(value ? "true" : "false"); }
void append(std::string& out, char value) { out.push_back(value); }
void append(std::string& out, float value) { append_number(out, value); }
void append(std::string& out, double value) { append_number(out, value); }
void append_signed(std::string& out, int64_t value) { append_number(out, value); }
void append_unsigned(std::string& out, uint64_t value) { append_number(out, value); }

void throw_error(const char* code, MessageParts parts, SourceLocation where) {
  throw Error(code, printable(parts.text), printable(parts.hint), where);
}

}  // namespace detail
}  // namespace gradus
