#include <gradus/io/checkpoint.h>
#include <gradus/io/safetensors.h>
#include <gradus/tensor/grad_mode.h>
#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace gradus {
namespace {

// Metadata: "gradus.checkpoint" is the version of this layout and "gradus.crc32" the checksum; "part/" marks
// a part, "part/key" is a value with its kind in front ("int 3", "double 0.1", "string text").
constexpr const char* kVersionKey = "gradus.checkpoint";
constexpr const char* kVersion = "2";
constexpr const char* kChecksumKey = "gradus.crc32";

using Value = CheckpointPart::Value;

template <class T>
const T& get(const CheckpointPart& part, std::string_view name, const char* kind) {
  const auto found = part.values.find(std::string(name));
  GRADUS_CHECK(found != part.values.end(), "E-CHECKPOINT", "checkpoint: no value is named '", name, "'");
  const T* value = std::get_if<T>(&found->second);
  GRADUS_CHECK(value, "E-CHECKPOINT", "checkpoint: the value '", name, "' is not of kind ", kind);
  return *value;
}

std::string shortest_text(double value) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

std::string encode(const Value& value) {
  if (const auto* i = std::get_if<int64_t>(&value)) return str("int ", *i);
  if (const auto* d = std::get_if<double>(&value)) return "double " + shortest_text(*d);
  return "string " + std::get<std::string>(value);
}

template <class T>
T parse_number(std::string_view text, const std::string& where) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  GRADUS_CHECK(error == std::errc{} && end == text.data() + text.size(), "E-CHECKPOINT", where, ": '", text,
               "' is not a number");
  return value;
}

Value decode(std::string_view text, const std::string& where) {
  const size_t space = text.find(' ');
  const std::string_view kind = text.substr(0, space);
  const std::string_view body = space == text.npos ? "" : text.substr(space + 1);
  if (kind == "int") return parse_number<int64_t>(body, where);
  if (kind == "double") return parse_number<double>(body, where);
  GRADUS_CHECK(kind == "string", "E-CHECKPOINT", where, ": unknown kind of value '", kind, "'");
  return std::string(body);
}

std::pair<std::string, std::string> split_name(const std::string& name, const std::string& path) {
  const size_t slash = name.find('/');
  GRADUS_CHECK(slash != name.npos, "E-CHECKPOINT", path, ": '", name,
               "' does not say which part it belongs to");
  return {name.substr(0, slash), name.substr(slash + 1)};
}

// The CRC-32 of the metadata but itself, and of the tensors' names, dtypes, sizes and bytes; texts end with a
// 0. In eight hexadecimal digits.
std::string checksum(const StateDict& tensors, const Metadata& metadata) {
  uLong crc = crc32_z(0, nullptr, 0);
  const auto add = [&crc](const void* data, size_t bytes) {
    crc = crc32_z(crc, static_cast<const Bytef*>(data), bytes);
  };
  const auto add_text = [&add](const std::string& text) { add(text.c_str(), text.size() + 1); };
  for (const auto& [key, value] : metadata) {
    if (key != kChecksumKey) add_text(key), add_text(value);
  }
  for (const auto& [name, tensor] : tensors) {
    add_text(name), add_text(to_string(tensor.dtype())), add_text(to_string(tensor.sizes()));
    add(tensor.raw_data(), tensor.nbytes());
  }
  std::string digits;
  for (int shift = 28; shift >= 0; shift -= 4) digits += "0123456789abcdef"[crc >> shift & 15];
  return digits;
}

void check_checksum(const SafeTensors& file, const std::string& path) {
  const auto found = file.metadata.find(kChecksumKey);
  const std::string written = found == file.metadata.end() ? "none" : found->second;
  const std::string read = checksum(file.tensors, file.metadata);
  GRADUS_CHECK(read == written, "E-CHECKSUM", path, ": is damaged: its checksum was ", written,
               " when it was written, and is ", read, " now",
               hint("go on from another checkpoint; is the disk sound, was the copy complete?"));
}

}  // namespace

int64_t CheckpointPart::get_int(std::string_view name) const { return get<int64_t>(*this, name, "int"); }
double CheckpointPart::get_double(std::string_view name) const { return get<double>(*this, name, "double"); }
const std::string& CheckpointPart::get_string(std::string_view name) const {
  return get<std::string>(*this, name, "string");
}

CheckpointPart& Checkpoint::operator[](std::string_view name) {
  for (auto& [known, part] : parts_)
    if (known == name) return part;
  return parts_.emplace_back(name, CheckpointPart{}).second;
}

bool Checkpoint::contains(std::string_view name) const {
  return std::any_of(parts_.begin(), parts_.end(), [&](const auto& part) { return part.first == name; });
}

const CheckpointPart& Checkpoint::at(std::string_view name) const {
  std::string there;
  for (const auto& [known, part] : parts_) {
    if (known == name) return part;
    there += str(there.empty() ? "" : ", ", known);
  }
  GRADUS_FAIL("E-CHECKPOINT", origin_, ": has no part '", name, "'; it has ", there.empty() ? "none" : there,
              hint("without it the run cannot go on as it was; save every part, or start anew"));
}

void save_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  NoGradGuard no_grad;
  StateDict tensors;
  Metadata metadata{{kVersionKey, kVersion}};
  for (const auto& [name, part] : checkpoint.parts()) {
    GRADUS_CHECK(!name.empty() && name.find('/') == name.npos, "E-ARG", "save_checkpoint: '", name,
                 "' cannot name a part: it must not be empty or contain '/'");
    metadata[name + "/"] = "";
    for (const auto& [key, value] : part.values) {
      GRADUS_CHECK(!key.empty(), "E-ARG", "save_checkpoint: a value of part '", name, "' has no name");
      metadata[name + "/" + key] = encode(value);
    }
    for (const auto& [key, tensor] : part.tensors) {
      GRADUS_CHECK(tensor.defined(), "E-ARG", "save_checkpoint: tensor '", key, "' of part '", name,
                   "' is undefined");
      tensors.add(name + "/" + key, tensor.cpu().contiguous());
    }
  }
  metadata[kChecksumKey] = checksum(tensors, metadata);
  save_safetensors(path, tensors, metadata);
}

Checkpoint load_checkpoint(const std::string& path) {
  SafeTensors file = load_safetensors(path);
  const auto version = file.metadata.find(kVersionKey);
  GRADUS_CHECK(version != file.metadata.end(), "E-CHECKPOINT", path,
               ": is a safetensors file, but not a checkpoint",
               hint("load weights alone with load_safetensors()"));
  GRADUS_CHECK(
      version->second == kVersion, "E-CHECKPOINT", path, ": is a checkpoint of version ", version->second,
      ", this program reads version ", kVersion,
      hint(version->second == "1" ? "version 1 had no checksum; go on with the program that wrote it, or "
                                    "start anew"
                                  : "go on with the program that wrote it"));
  check_checksum(file, path);
  file.metadata.erase(kVersionKey);
  file.metadata.erase(kChecksumKey);
  Checkpoint checkpoint;
  checkpoint.origin_ = path;
  for (const auto& [name, text] : file.metadata) {
    const auto [part, key] = split_name(name, path);
    if (key.empty()) {
      checkpoint[part];
    } else {
      checkpoint[part].values[key] = decode(text, str(path, ": ", name));
    }
  }
  for (const auto& [name, tensor] : file.tensors) {
    const auto [part, key] = split_name(name, path);
    checkpoint[part].tensors.add(key, tensor);
  }
  return checkpoint;
}

}  // namespace gradus
