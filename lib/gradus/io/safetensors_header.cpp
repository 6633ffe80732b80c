#include <gradus/io/safetensors_header.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

namespace gradus::detail {
namespace {

struct DTypeName {
  std::string_view name;
  DType dtype;
};
constexpr DTypeName kDTypeNames[] = {{"U8", kUInt8},    {"I32", kInt32},   {"I64", kInt64},
                                     {"BOOL", kBool},   {"F16", kFloat16}, {"BF16", kBFloat16},
                                     {"F32", kFloat32}, {"F64", kFloat64}};

// Receives the JSON piece by piece and refuses the first one that has no place in a safetensors header.
// Nothing is built from text that is not wanted, so depth and size of hostile JSON do not matter.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(const std::string& path) : path_(path) {}
  SafeTensorsHeader take() { return std::move(header_); }

  bool start_object(size_t) override {
    if (at_ == At::file) return go(At::names);
    if (at_ == At::tensor_or_metadata) return go(in_metadata_ ? At::metadata : At::tensor);
    refuse("an object where none belongs");
  }
  bool end_object() override {
    if (at_ == At::tensor) finish_entry();
    return go(at_ == At::names ? At::file : At::names);
  }
  bool key(string_t& text) override {
    switch (at_) {
      case At::names:
        return name(text);
      case At::metadata:
        return metadata_key(text);
      default:
        return field(text);
    }
  }
  bool string(string_t& text) override {
    if (at_ == At::metadata) {
      header_.metadata[key_] = text;
      return true;
    }
    if (at_ != At::tensor || key_ != "dtype") refuse("a text where none belongs");
    entry_.dtype = parse_dtype(text);
    return true;
  }
  bool start_array(size_t) override {
    if (at_ != At::tensor || key_ == "dtype") refuse("a list where none belongs");
    numbers_.clear();
    return go(At::list);
  }
  bool end_array() override {
    if (key_ == "shape") {
      set_shape();
    } else {
      if (numbers_.size() != 2) refuse("data_offsets must be two numbers");
      entry_.begin = numbers_[0], entry_.end = numbers_[1];
    }
    return go(At::tensor);
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (at_ != At::list) refuse("a number where none belongs");
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      refuse("a number that overflows 63 bits");
    numbers_.push_back(static_cast<int64_t>(value));
    return true;
  }
  bool number_integer(number_integer_t) override { refuse("invalid shape or offset: a negative number"); }
  bool number_float(number_float_t, const string_t& text) override {
    refuse(str("invalid shape or offset: ", text, " is not a 64-bit integer"));
  }
  bool null() override { refuse("a null where none belongs"); }
  bool boolean(bool) override { refuse("a true or false where none belongs"); }
  bool binary(binary_t&) override { refuse("binary data"); }
  bool parse_error(size_t at, const std::string&, const nlohmann::json::exception&) override {
    GRADUS_FAIL("E-FORMAT", path_, ": the safetensors header is not valid JSON near its byte ", at);
  }

 private:
  enum class At { file, names, tensor_or_metadata, metadata, tensor, list };

  bool go(At next) {
    at_ = next;
    return true;
  }
  [[noreturn]] void refuse(std::string_view what) const {
    const std::string whose = entry_.name.empty() ? "" : str(", tensor '", entry_.name, "'");
    GRADUS_FAIL("E-FORMAT", path_, ": safetensors header", whose, ": ", what);
  }
  bool name(const std::string& text) {
    if (!names_.insert(text).second) refuse(str("the name '", text, "' is there twice"));
    in_metadata_ = text == "__metadata__";
    entry_ = {};
    if (!in_metadata_) entry_.name = text;
    fields_.clear();
    return go(At::tensor_or_metadata);
  }
  bool metadata_key(const std::string& text) {
    if (header_.metadata.count(text)) refuse(str("the metadata key '", text, "' is there twice"));
    key_ = text;
    return true;
  }
  bool field(const std::string& text) {
    if (text != "dtype" && text != "shape" && text != "data_offsets")
      refuse(str("unknown field '", text, "'"));
    if (!fields_.insert(text).second) refuse(str("the field '", text, "' is there twice"));
    key_ = text;
    return true;
  }
  DType parse_dtype(const std::string& text) const {
    for (const DTypeName& known : kDTypeNames)
      if (known.name == text) return known.dtype;
    refuse(str("dtype '", text, "' is not one of U8, I32, I64, BOOL, F16, BF16, F32, F64"));
  }
  void set_shape() {
    if (numbers_.size() > kMaxDims)
      refuse(str("invalid shape: ", numbers_.size(), " dimensions, at most ", kMaxDims));
    entry_.sizes = Shape(std::span<const int64_t>(numbers_));
  }
  void finish_entry() {
    if (fields_.size() != 3) refuse("needs dtype, shape and data_offsets");
    header_.entries.push_back(std::move(entry_));
    entry_ = {};
  }

  std::string path_, key_;
  At at_ = At::file;
  bool in_metadata_ = false;
  std::vector<int64_t> numbers_;
  std::unordered_set<std::string> names_, fields_;
  SafeTensorsEntry entry_;
  SafeTensorsHeader header_;
};

std::string_view dtype_name(DType dtype) {
  const auto* known = std::find_if(std::begin(kDTypeNames), std::end(kDTypeNames),
                                   [&](const DTypeName& d) { return d.dtype == dtype; });
  return known->name;
}

std::string quoted(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    GRADUS_FAIL("E-ARG", "save_safetensors: a name or metadata text is not valid UTF-8");
  }
}

std::string comma_separated(const Shape& sizes) {
  std::string out;
  for (int64_t size : sizes) out += str(out.empty() ? "" : ",", size);
  return out;
}

}  // namespace

SafeTensorsHeader parse_safetensors_header(std::string_view json, const std::string& path) {
  // nlohmann takes a NUL for the end of the text and would not look at what follows.
  GRADUS_CHECK(json.find('\0') == json.npos, "E-FORMAT", path,
               ": the safetensors header contains a NUL byte");
  HeaderReader reader(path);
  nlohmann::json::sax_parse(json.begin(), json.end(), &reader);
  SafeTensorsHeader header = reader.take();
  for (const SafeTensorsEntry& e : header.entries) {
    const std::string whose = str(path, ": tensor '", e.name, "'");
    const int64_t bytes = checked_bytes(e.sizes, element_size(e.dtype), whose.c_str());
    GRADUS_CHECK(e.end >= e.begin && e.end - e.begin == bytes, "E-FORMAT", whose, ": ", to_string(e.dtype),
                 " of shape ", e.sizes, " needs ", bytes, " bytes, but data_offsets are ", e.begin, " to ",
                 e.end);
  }
  return header;
}

void check_safetensors_offsets(const SafeTensorsHeader& header, int64_t data_bytes, const std::string& path) {
  std::vector<const SafeTensorsEntry*> order;
  for (const SafeTensorsEntry& entry : header.entries) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const SafeTensorsEntry* a, const SafeTensorsEntry* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  int64_t covered = 0;
  for (const SafeTensorsEntry* e : order) {
    GRADUS_CHECK(e->begin >= covered, "E-FORMAT", path, ": tensor '", e->name, "' starts at byte ", e->begin,
                 " and overlaps the one before, which ends at ", covered);
    GRADUS_CHECK(e->begin == covered, "E-FORMAT", path, ": bytes ", covered, " to ", e->begin,
                 " before tensor '", e->name, "' belong to no tensor");
    covered = e->end;
  }
  GRADUS_CHECK(covered <= data_bytes, "E-TRUNCATED", path, ": the tensors need ", covered,
               " bytes behind the header, the file has ", data_bytes,
               hint("the file is cut short; fetch or write it again"));
  GRADUS_CHECK(covered == data_bytes, "E-FORMAT", path, ": the tensors need ", covered,
               " bytes behind the header, but the file has ", data_bytes);
}

std::string format_safetensors_header(const SafeTensorsHeader& header) {
  std::string out = "{";
  if (!header.metadata.empty()) {
    std::string pairs;
    for (const auto& [key, value] : header.metadata)
      pairs += str(pairs.empty() ? "" : ",", quoted(key), ":", quoted(value));
    out += str("\"__metadata__\":{", pairs, "}");
  }
  for (const SafeTensorsEntry& e : header.entries) {
    out += str(out.size() > 1 ? "," : "", quoted(e.name), ":{\"dtype\":\"", dtype_name(e.dtype),
               "\",\"shape\":[", comma_separated(e.sizes), "],\"data_offsets\":[", e.begin, ",", e.end, "]}");
  }
  out += "}";
  out.resize((out.size() + 7) / 8 * 8, ' ');
  return out;
}

}  // namespace gradus::detail
