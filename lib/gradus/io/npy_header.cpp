#include <gradus/io/npy_header.h>

#include <charconv>
#include <limits>

namespace gradus::detail {
namespace {

constexpr std::string_view kSpaces = " \t\r\n\f";

struct Descr {
  std::string_view kind;  // without the byte order
  DType dtype;
};
constexpr Descr kDescrs[] = {{"u1", kUInt8},   {"i4", kInt32},   {"i8", kInt64},  {"b1", kBool},
                             {"f2", kFloat16}, {"f4", kFloat32}, {"f8", kFloat64}};

// Reads one Python dictionary literal of the three known keys.
class Parser {
 public:
  Parser(std::string_view text, const std::string& path) : rest_(text), path_(path) {}

  NpyHeader parse() {
    NpyHeader header;
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr") {
        header.dtype = descr(has_descr);
      } else if (key == "fortran_order") {
        header.fortran_order = boolean(has_order);
      } else if (key == "shape") {
        header.sizes = shape(has_shape);
      } else {
        refuse("unknown key '", key, "'");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_spaces();
    if (!rest_.empty()) refuse("text after the dictionary");
    if (!(has_descr && has_order && has_shape)) refuse("needs the keys descr, fortran_order and shape");
    return header;
  }

 private:
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    GRADUS_FAIL("E-FORMAT", path_, ": npy header: ", parts...);
  }
  void skip_spaces() {
    const size_t n = rest_.find_first_not_of(kSpaces);
    rest_.remove_prefix(n == rest_.npos ? rest_.size() : n);
  }
  bool accept(char wanted) {
    skip_spaces();
    if (rest_.empty() || rest_[0] != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) refuse("expected '", wanted, "' before '", rest_.substr(0, 20), "'");
  }
  bool accept_word(std::string_view word) {
    skip_spaces();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void once(bool& seen, std::string_view key) const {
    if (seen) refuse("the key '", key, "' is there twice");
    seen = true;
  }

  std::string_view quoted() {
    const char quote = accept('"') ? '"' : '\'';
    if (quote == '\'') expect('\'');
    const size_t end = rest_.find(quote);
    if (end == rest_.npos) refuse("a text without its closing quote");
    const std::string_view text = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return text;
  }

  DType descr(bool& seen) {
    once(seen, "descr");
    if (accept('[')) refuse("structured dtypes are not supported");
    const std::string_view text = quoted();
    if (text.starts_with('>')) refuse("big-endian dtype '", text, "' is not supported");
    const std::string_view kind = text.substr(text.find_first_not_of("<|=") == 1 ? 1 : 0);
    for (const Descr& known : kDescrs)
      if (known.kind == kind) return known.dtype;
    refuse("dtype '", text, "' is not one of u1, i4, i8, b1, f2, f4, f8");
  }

  bool boolean(bool& seen) {
    once(seen, "fortran_order");
    if (accept_word("True")) return true;
    if (accept_word("False")) return false;
    refuse("fortran_order must be True or False");
  }

  Shape shape(bool& seen) {
    once(seen, "shape");
    Shape sizes;
    expect('(');
    bool comma = true;
    while (!accept(')')) {
      if (!comma) refuse("expected ',' in the shape");
      if (sizes.size() == kMaxDims) refuse("invalid shape: more than ", kMaxDims, " dimensions");
      sizes.push_back(size());
      comma = accept(',');
    }
    if (sizes.size() == 1 && !comma) refuse("shape must be a tuple, found a number in parentheses");
    return sizes;
  }

  int64_t size() {
    skip_spaces();
    int64_t value = -1;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error == std::errc::result_out_of_range) refuse("invalid shape: a size overflows 64 bits");
    if (error != std::errc{} || value < 0) refuse("invalid shape: a size must be a whole number from 0");
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return value;
  }

  std::string_view rest_;
  const std::string& path_;
};

}  // namespace

NpyHeader parse_npy_header(std::string_view text, const std::string& path) {
  return Parser(text, path).parse();
}

std::string format_npy_header(const NpyHeader& header) {
  GRADUS_CHECK(header.dtype != kBFloat16, "E-DTYPE", "save_npy: NumPy has no dtype for bfloat16",
               hint("convert it with .to(kFloat32)"));
  std::string_view kind;
  for (const Descr& known : kDescrs)
    if (known.dtype == header.dtype) kind = known.kind;
  std::string sizes;
  for (int64_t size : header.sizes) sizes += str(sizes.empty() ? "" : ", ", size);
  if (header.sizes.size() == 1) sizes += ",";
  return str("{'descr': '", element_size(header.dtype) == 1 ? "|" : "<", kind,
             "', 'fortran_order': ", header.fortran_order ? "True" : "False", ", 'shape': (", sizes, "), }");
}

}  // namespace gradus::detail
