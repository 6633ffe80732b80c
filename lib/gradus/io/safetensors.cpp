#include <gradus/base/file.h>
#include <gradus/io/safetensors.h>
#include <gradus/io/safetensors_header.h>
#include <gradus/tensor/grad_mode.h>
#include <gradus/tensor/views.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <unordered_set>

namespace gradus {
namespace {

using detail::SafeTensorsEntry;
using detail::SafeTensorsHeader;

// The limit of the format's reference reader.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;

uint64_t little_endian(const std::array<unsigned char, 8>& bytes) {
  uint64_t value = 0;
  for (int i = 7; i >= 0; --i) value = value << 8 | bytes[i];
  return value;
}

std::array<unsigned char, 8> to_little_endian(uint64_t value) {
  std::array<unsigned char, 8> bytes;
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<unsigned char>(value >> 8 * i);
  return bytes;
}

void refuse_other_formats(InputFile& file) {
  std::string start(static_cast<size_t>(std::min<int64_t>(file.size(), 64)), '\0');
  file.read_some(start.data(), static_cast<int64_t>(start.size()));
  file.rewind();
  GRADUS_CHECK(!start.starts_with("version https://git-lfs"), "E-FORMAT", file.path(),
               ": not a safetensors file but a Git LFS pointer", hint("run: git lfs pull"));
  // Longer than one byte: a header of 60 bytes has the length "<\0\0\0\0\0\0\0".
  const bool web_page =
      start.starts_with("<!DOCTYPE") || start.starts_with("<html") || start.starts_with("<?xml");
  GRADUS_CHECK(!web_page, "E-FORMAT", file.path(), ": not a safetensors file; it looks like a web page",
               hint("the download failed; fetch it again"));
}

std::string read_header_text(InputFile& file) {
  refuse_other_formats(file);
  std::array<unsigned char, 8> length_bytes;
  file.read(length_bytes.data(), 8, "the length of the safetensors header");
  const uint64_t length = little_endian(length_bytes);
  GRADUS_CHECK(length <= static_cast<uint64_t>(file.remaining()), "E-TRUNCATED", file.path(),
               ": the safetensors header needs ", length, " bytes, but the file has ", file.remaining(),
               " left", hint("the file is cut short, or it is not a safetensors file"));
  GRADUS_CHECK(length <= kMaxHeaderBytes, "E-FORMAT", file.path(), ": the safetensors header needs ", length,
               " bytes, more than the limit of ", kMaxHeaderBytes);
  std::string text(length, '\0');
  file.read(text.data(), static_cast<int64_t>(length), "the safetensors header");
  GRADUS_CHECK(text.starts_with('{'), "E-FORMAT", file.path(),
               ": the safetensors header does not start with '{'");
  return text;
}

// Reading a byte other than 0 and 1 as a bool is undefined behaviour.
void check_bools(const Tensor& tensor, const std::string& name, const std::string& path) {
  const auto* bytes = static_cast<const unsigned char*>(tensor.raw_data());
  const auto* end = bytes + tensor.numel();
  const auto* bad = std::find_if(bytes, end, [](unsigned char b) { return b > 1; });
  GRADUS_CHECK(bad == end, "E-FORMAT", path, ": bool tensor '", name, "' holds ", static_cast<int>(*bad),
               " at element ", bad - bytes);
}

// Entries by where their data lies, so that the file is read and written front to back.
std::vector<size_t> data_order(const SafeTensorsHeader& header) {
  std::vector<size_t> order(header.entries.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return header.entries[a].begin < header.entries[b].begin; });
  return order;
}

void check_names(const StateDict& tensors) {
  std::unordered_set<std::string_view> seen;
  for (const auto& [name, tensor] : tensors) {
    GRADUS_CHECK(seen.insert(name).second, "E-ARG", "save_safetensors: the name '", name, "' is there twice");
    GRADUS_CHECK(name != "__metadata__", "E-ARG",
                 "save_safetensors: '__metadata__' is not allowed as a name");
    GRADUS_CHECK(tensor.defined(), "E-ARG", "save_safetensors: tensor '", name, "' is undefined");
  }
}

SafeTensorsHeader header_for(const StateDict& tensors, const Metadata& metadata) {
  SafeTensorsHeader header;
  header.metadata = metadata;
  for (const auto& [name, tensor] : tensors)
    header.entries.push_back({name, tensor.dtype(), tensor.sizes(), 0, 0});
  int64_t offset = 0;
  for (size_t width : {8, 4, 2, 1}) {
    for (SafeTensorsEntry& entry : header.entries) {
      if (element_size(entry.dtype) != width) continue;
      entry.begin = offset;
      offset += checked_bytes(entry.sizes, width, "save_safetensors");
      entry.end = offset;
    }
  }
  return header;
}

}  // namespace

SafeTensors load_safetensors(const std::string& path) {
  InputFile file(path);
  const SafeTensorsHeader header = detail::parse_safetensors_header(read_header_text(file), path);
  detail::check_safetensors_offsets(header, file.remaining(), path);
  std::vector<Tensor> tensors(header.entries.size());
  for (size_t i : data_order(header)) {
    const SafeTensorsEntry& entry = header.entries[i];
    tensors[i] = empty(entry.sizes, entry.dtype);
    file.read(tensors[i].raw_data(), entry.end - entry.begin, "a tensor");
    if (entry.dtype == kBool) check_bools(tensors[i], entry.name, path);
  }
  SafeTensors result;
  result.metadata = header.metadata;
  for (size_t i = 0; i < tensors.size(); ++i)
    result.tensors.add(header.entries[i].name, std::move(tensors[i]));
  return result;
}

void save_safetensors(const std::string& path, const StateDict& tensors, const Metadata& metadata) {
  NoGradGuard no_grad;
  check_names(tensors);
  const SafeTensorsHeader header = header_for(tensors, metadata);
  const std::string text = detail::format_safetensors_header(header);
  write_atomically(path, [&](OutputFile& file) {
    const auto length = to_little_endian(text.size());
    file.write(length.data(), 8);
    file.write(text);
    for (size_t i : data_order(header)) {
      const Tensor tensor = (tensors.begin() + static_cast<std::ptrdiff_t>(i))->second.cpu().contiguous();
      file.write(tensor.raw_data(), static_cast<int64_t>(tensor.nbytes()));
    }
  });
}

}  // namespace gradus
